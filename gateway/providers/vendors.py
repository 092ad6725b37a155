"""Vendors of models, and servers of one's own, by the names that people write into `model.provider`. Data alone.

A row says at which address a vendor is, which API it speaks, where people keep its key and get one, and what it lacks.
Everything else is the API's own package. Another package adds rows: under the entry-point group `legato.vendors` it
registers a tuple of them. Addresses and variables are those of the vendors' own documentation, read in November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gateway.providers.plugin import ProviderPlugin, Vendor, anywhere
from gateway.runtime.structs import replace

GROUP: Final = "legato.vendors"
USUAL_API: Final = "openai"  # which nearly all of them speak

VENDORS: Final = (
    Vendor(
        name="gemini",
        title="Google Gemini",
        address="https://generativelanguage.googleapis.com/v1beta/openai",
        key="GEMINI_API_KEY",
        keys_at="https://aistudio.google.com/apikey",
        prices="google",
        traced_as="gcp.gemini",
        example="gemini-2.5-flash",
        note="tools, pictures, thinking; what it attaches to its calls goes back to it",
    ),
    Vendor(
        name="openrouter",
        title="OpenRouter",
        address="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        keys_at="https://openrouter.ai/settings/keys",
        prices="openrouter",
        example="anthropic/claude-sonnet-4.5",
        note="the models of all others; tells windows and prices; Claude's cache is used",
    ),
    Vendor(
        name="groq",
        title="Groq",
        address="https://api.groq.com/openai/v1",
        key="GROQ_API_KEY",
        keys_at="https://console.groq.com/keys",
        prices="groq",
        example="openai/gpt-oss-120b",
        note="tools; tells windows",
    ),
    Vendor(
        name="xai",
        title="xAI",
        address="https://api.x.ai/v1",
        key="XAI_API_KEY",
        keys_at="https://console.x.ai",
        prices="x-ai",
        traced_as="x_ai",
        example="grok-4",
        note="tools, pictures, thinking",
    ),
    Vendor(
        name="deepseek",
        title="DeepSeek",
        address="https://api.deepseek.com/v1",
        key="DEEPSEEK_API_KEY",
        keys_at="https://platform.deepseek.com/api_keys",
        prices="deepseek",
        example="deepseek-chat",
        note="tools, thinking; caches by itself",
    ),
    Vendor(
        name="mistral",
        title="Mistral",
        address="https://api.mistral.ai/v1",
        key="MISTRAL_API_KEY",
        keys_at="https://console.mistral.ai/api-keys",
        prices="mistral",
        traced_as="mistral_ai",
        example="mistral-medium-latest",
        note="tools, pictures; tells windows",
    ),
    Vendor(
        name="together",
        title="Together AI",
        address="https://api.together.xyz/v1",
        key="TOGETHER_API_KEY",
        keys_at="https://api.together.ai/settings/api-keys",
        prices="together",
        example="deepseek-ai/DeepSeek-V3.1",
        note="tools; tells windows and prices",
    ),
    Vendor(
        name="fireworks",
        title="Fireworks AI",
        address="https://api.fireworks.ai/inference/v1",
        key="FIREWORKS_API_KEY",
        keys_at="https://app.fireworks.ai/settings/users/api-keys",
        prices="fireworks",
        example="accounts/fireworks/models/gpt-oss-120b",
        note="tools; tells windows",
    ),
    Vendor(
        name="cerebras",
        title="Cerebras",
        address="https://api.cerebras.ai/v1",
        key="CEREBRAS_API_KEY",
        keys_at="https://cloud.cerebras.ai",
        prices="cerebras",
        example="gpt-oss-120b",
        note="tools",
    ),
    Vendor(
        name="perplexity",
        title="Perplexity",
        address="https://api.perplexity.ai",
        key="PERPLEXITY_API_KEY",
        keys_at="https://www.perplexity.ai/account/api/keys",
        prices="perplexity",
        lacks=("tools",),
        example="sonar-pro",
        note="searches the web by itself; no tools of ours, so no memory or reminders by the model",
    ),
    Vendor(
        name="moonshot",
        title="Moonshot AI",
        address="https://api.moonshot.ai/v1",
        key="MOONSHOT_API_KEY",
        keys_at="https://platform.moonshot.ai/console/api-keys",
        prices="moonshotai",
        traced_as="moonshot_ai",
        example="kimi-k2-thinking",
        note="tools, thinking; in China: base_url https://api.moonshot.cn/v1",
    ),
    Vendor(
        name="zai",
        title="Z.ai",
        address="https://api.z.ai/api/paas/v4",
        key="ZAI_API_KEY",
        keys_at="https://z.ai/manage-apikey/apikey-list",
        prices="zai",
        example="glm-4.6",
        note="tools, thinking; in China: base_url https://open.bigmodel.cn/api/paas/v4",
    ),
    Vendor(
        name="minimax",
        title="MiniMax",
        address="https://api.minimax.io/v1",
        key="MINIMAX_API_KEY",
        keys_at="https://platform.minimax.io/user-center/basic-information/interface-key",
        prices="minimax",
        example="MiniMax-M2",
        note="tools, thinking; in China: base_url https://api.minimaxi.com/v1",
    ),
    Vendor(
        name="qwen",
        title="Qwen (Alibaba Cloud)",
        address="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key="DASHSCOPE_API_KEY",
        keys_at="https://modelstudio.console.alibabacloud.com/?tab=api#/api-key",
        example="qwen3-max",
        note="tools, thinking; in China: base_url https://dashscope.aliyuncs.com/compatible-mode/v1",
    ),
    Vendor(
        name="nvidia",
        title="NVIDIA",
        address="https://integrate.api.nvidia.com/v1",
        key="NVIDIA_API_KEY",
        keys_at="https://build.nvidia.com/settings/api-keys",
        example="openai/gpt-oss-120b",
        note="tools, for most models",
    ),
    Vendor(
        name="huggingface",
        title="Hugging Face",
        address="https://router.huggingface.co/v1",
        key="HF_TOKEN",
        keys_at="https://huggingface.co/settings/tokens",
        example="openai/gpt-oss-120b",
        note="many hosts behind one key; tells windows and prices",
    ),
    Vendor(
        name="github",
        title="GitHub Models",
        address="https://models.github.ai/inference",
        key="GITHUB_TOKEN",
        keys_at="https://github.com/settings/personal-access-tokens",
        example="openai/gpt-4.1",
        note="tools; free of charge within small limits",
    ),
    Vendor(
        name="azure",
        title="Azure OpenAI",
        address="https://{RESOURCE}.openai.azure.com/openai/v1",
        key="AZURE_OPENAI_API_KEY",
        keys_at="https://ai.azure.com",
        key_header="api-key",
        token_command="az account get-access-token --resource https://cognitiveservices.azure.com "
        "--query accessToken --output tsv",
        prices="azure",
        traced_as="azure.ai.openai",
        example="DEPLOYMENT",
        note="the name is that of your deployment; a token in place of a key: api_key_command",
    ),
    Vendor(
        name="bedrock",
        title="Amazon Bedrock",
        address="https://bedrock-runtime.{REGION}.amazonaws.com/openai/v1",
        key="AWS_BEARER_TOKEN_BEDROCK",
        keys_at="https://console.aws.amazon.com/bedrock/home#/api-keys",
        prices="aws",
        traced_as="aws.bedrock",
        example="openai.gpt-oss-120b-1:0",
        note="REGION such as us-east-1; open models and those of OpenAI",
    ),
    Vendor(
        name="vertex",
        title="Google Vertex AI",
        address="https://aiplatform.googleapis.com/v1/projects/{PROJECT}/locations/global/endpoints/openapi",
        keys_at="https://cloud.google.com/sdk/docs/install",
        token_command="gcloud auth print-access-token",
        prices="google",
        traced_as="gcp.vertex_ai",
        example="google/gemini-2.5-flash",
        note="PROJECT is your project's id; a token from `gcloud`, asked for again every ten minutes",
    ),
    Vendor(
        name="ollama",
        title="Ollama",
        address="http://127.0.0.1:11434/v1",
        own=True,
        free=True,
        example="qwen3",
        note="start it with OLLAMA_CONTEXT_LENGTH=32768; tells its window",
    ),
    Vendor(
        name="lmstudio",
        title="LM Studio",
        address="http://127.0.0.1:1234/v1",
        own=True,
        free=True,
        example="qwen/qwen3-8b",
        note="tells the window of the loaded model",
    ),
    Vendor(
        name="llamacpp",
        title="llama.cpp",
        address="http://127.0.0.1:8080/v1",
        own=True,
        free=True,
        example="any",
        note="start it with --jinja for tools; tells its window; any name will do",
    ),
    Vendor(
        name="vllm",
        title="vLLM",
        address="http://127.0.0.1:8000/v1",
        own=True,
        free=True,
        example="Qwen/Qwen3-8B",
        note="--enable-auto-tool-choice and --tool-call-parser for tools; tells its window",
    ),
    Vendor(
        name="litellm",
        title="LiteLLM",
        address="http://127.0.0.1:4000/v1",
        key="LITELLM_API_KEY",
        own=True,
        example="gpt-5-mini",
        note="a proxy in front of others; calls cost what those ask",
    ),
)


def as_provider(vendor: Vendor, api: ProviderPlugin) -> ProviderPlugin:
    """Return a vendor as a provider of its API, with a price list of its own."""

    def listed(model: str) -> Iterator[tuple[str | None, str]]:
        if vendor.prices:
            yield vendor.prices, model
        yield from anywhere(model)

    return replace(api, name=vendor.name, vendor=vendor, listed=listed, examples=(), free=vendor.free)
