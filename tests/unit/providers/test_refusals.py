"""Refusals that teach something, or that send a question to the next model: what vendors say, and what is meant."""

# ruff: noqa: E501 - a body is easier to compare with the real one on few lines

from __future__ import annotations

import json

import pytest

from gateway.agent.fallback import is_away
from gateway.providers.errors import classify
from gateway.runtime.errors import (
    ContextOverflow,
    FeatureRefused,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderUnavailable,
    QuotaExceeded,
)


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error", param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


def anthropic(message: str, kind: str = "invalid_request_error") -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


KINDS = {
    QuotaExceeded: "quota",
    ContextOverflow: "overflow",
    OutputCapTooLarge: "output",
    ProviderRateLimited: "rate",
    ProviderUnavailable: "unavailable",
}
SENTENCES = {"country or region": "region", "refused the API key": "key", "does not have this model": "away"}


def meaning(error: ProviderError) -> str:
    """What a refusal was taken for."""
    if isinstance(error, FeatureRefused):
        return f"feature {error.feature}"
    said = (word for sentence, word in SENTENCES.items() if sentence in str(error))
    return KINDS.get(type(error)) or next(said, "other")


# Each: (meaning, status, body).
WORDINGS = [
    # effort
    (
        "feature reasoning_effort",
        400,
        openai(
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.",
            "unsupported_value",
            param="reasoning_effort",
        ),
    ),
    (
        "feature reasoning_effort",
        400,
        openai(
            "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
            "unsupported_value",
            param="reasoning.effort",
        ),
    ),
    (
        "feature reasoning_effort",
        400,
        openai(
            "Invalid value: 'xhigh'. Supported values are: 'none', 'minimal', 'low', 'medium', and 'high'.",
            "invalid_value",
            param="reasoning.effort",
        ),
    ),
    ("feature reasoning_effort", 400, openai("`reasoning_effort` must be one of `none` or `default`")),
    (
        "feature reasoning_effort",
        400,
        json.dumps(
            {
                "code": "Client specified an invalid argument",
                "error": "Argument not supported on this model: reasoningEffort",
            }
        ),
    ),
    ("feature reasoning_effort", 400, openai("Unrecognized request argument supplied: reasoning_effort")),
    ("feature reasoning_effort", 400, anthropic("output_config.effort: Input should be 'low', 'medium' or 'high'")),
    ("feature reasoning_effort", 400, anthropic("This model does not support the effort parameter.")),
    ("feature reasoning_effort", 400, anthropic("output_config: Extra inputs are not permitted")),
    (
        "feature reasoning_effort",
        422,
        json.dumps(
            {
                "detail": [
                    {
                        "type": "enum",
                        "loc": ["body", "reasoning_effort"],
                        "msg": "Input should be 'low', 'medium' or 'high'",
                    }
                ]
            }
        ),
    ),
    # thinking
    ("feature thinking", 400, anthropic("adaptive thinking is not supported on this model")),
    (
        "feature thinking",
        400,
        anthropic(
            "thinking.type: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'"
        ),
    ),
    (
        "feature thinking",
        400,
        anthropic(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        ),
    ),
    ("feature thinking", 400, anthropic("thinking.budget_tokens: this model only supports adaptive thinking")),
    ("feature thinking", 400, anthropic("thinking: Extra inputs are not permitted")),
    # cache
    ("feature cache_marks", 400, anthropic("system.0.cache_control: Extra inputs are not permitted")),
    ("feature cache_marks", 400, anthropic("messages.3.content.0.text.cache_control: Extra inputs are not permitted")),
    ("feature cache_marks", 400, openai("Unknown parameter: 'messages[0].content[0].cache_control'.")),
    (
        "feature cache_marks",
        422,
        json.dumps({"detail": [{"loc": ["body", "system", 0, "cache_control"], "msg": "extra fields not permitted"}]}),
    ),
    ("feature cache_marks", 400, anthropic("cache_control.ttl: Extra inputs are not permitted")),
    # temperature
    (
        "feature temperature",
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            "unsupported_value",
            param="temperature",
        ),
    ),
    ("feature temperature", 400, openai("invalid temperature: only 1 is allowed for this model")),
    ("feature temperature", 400, anthropic("`temperature` may only be set to 1 when thinking is enabled.")),
    ("feature temperature", 400, anthropic("temperature: this model only supports temperature 1")),
    ("feature temperature", 400, openai("temperature must be 1 for this model")),
    # stream
    ("feature stream", 400, openai("This model only supports non-streaming requests.")),
    ("feature stream", 400, openai("only non-streaming is supported for this model")),
    ("feature stream", 400, openai("stream must be false for this model")),
    (
        "not feature stream",
        400,
        json.dumps(
            {
                "code": "InvalidParameter",
                "message": "This model only support stream mode, please enable the stream parameter to access the model.",
            }
        ),
    ),
    # responses only
    # dead models / accounts worded as 400
    (
        "away",
        400,
        openai(
            "The model `llama3-70b-8192` has been decommissioned and is no longer supported. Please refer to https://console.groq.com/docs/deprecations for a recommendation on which model to use instead.",
            "model_decommissioned",
        ),
    ),
    ("away", 400, openai("Model Not Exist")),
    ("away", 400, openai("Invalid model: mistral-foo", "1500", "invalid_model")),
    (
        "away",
        400,
        json.dumps({"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}),
    ),
    ("away", 400, openai("model 'foo' not found")),
    ("away", 400, openai("The model gpt-foo does not exist or you do not have access to it.")),
    ("away", 400, openai("模型不存在，请检查模型代码。", "1211")),
    ("away", 400, openai("foo is not a valid model ID")),
    (
        "key",
        400,
        json.dumps(
            [
                {
                    "error": {
                        "code": 400,
                        "message": "API key not valid. Please pass a valid API key.",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ]
        ),
    ),
    (
        "key",
        400,
        json.dumps(
            {
                "code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: xa***AB. You can obtain an API key from https://console.x.ai.",
            }
        ),
    ),
    (
        "key",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "API key expired. Please renew the API key.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ),
    ),
    (
        "quota",
        400,
        anthropic(
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."
        ),
    ),
    ("quota", 400, anthropic("Your credit balance is too low to access the Anthropic API.")),
    (
        "quota",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    (
        "quota",
        429,
        openai("Your team 1234 has either used all available credits or reached its monthly spending limit."),
    ),
    (
        "quota",
        429,
        json.dumps(
            {"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}
        ),
    ),
    (
        "quota",
        403,
        json.dumps(
            {"code": "AllocationQuota.FreeTierOnly", "message": "The free tier of the model has been exhausted."}
        ),
    ),
    (
        "quota",
        429,
        openai(
            "Your account org-x has been suspended due to insufficient balance, please recharge your account",
            "exceeded_current_quota_error",
            "exceeded_current_quota_error",
        ),
    ),
    ("quota", 429, json.dumps({"error": {"message": "Daily free allocation used up", "code": "quota_exhausted"}})),
    (
        "rate",
        429,
        json.dumps(
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 10 Please retry in 23.5s.",
                    "status": "RESOURCE_EXHAUSTED",
                }
            }
        ),
    ),
    (
        "rate",
        429,
        openai(
            "Rate limit reached for gpt-4 in organization on requests per min. Limit: 3 / min. Please try again in 20s.",
            "rate_limit_exceeded",
            "requests",
        ),
    ),
    # region
    (
        "region",
        403,
        openai(
            "Country, region, or territory not supported", "unsupported_country_region_territory", "request_forbidden"
        ),
    ),
    (
        "region",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "User location is not supported for the API use.",
                    "status": "FAILED_PRECONDITION",
                }
            }
        ),
    ),
    (
        "region",
        403,
        anthropic(
            "Access to Anthropic models is not allowed from unsupported countries, regions, or territories.",
            "forbidden",
        ),
    ),
    ("region", 403, json.dumps({"error": "The model grok-4 is not available in your region"})),
    # 498
    (
        "unavailable",
        498,
        json.dumps({"error": {"message": "Flex tier capacity exceeded", "type": "capacity_exceeded"}}),
    ),
    ("unavailable", 529, anthropic("Overloaded", "overloaded_error")),
    # length
    (
        "overflow",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (9000 in your prompt; 3000 for the completion). Please reduce your prompt; or completion length."
        ),
    ),
    (
        "overflow",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 9000 input tokens (4096 > 8192 - 9000)."
        ),
    ),
    (
        "overflow",
        422,
        json.dumps(
            {
                "error": {
                    "message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`"
                }
            }
        ),
    ),
    (
        "overflow",
        400,
        json.dumps(
            {
                "errors": [
                    {
                        "message": "AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000).",
                        "code": 5021,
                    }
                ]
            }
        ),
    ),
    (
        "output",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (2000 in your prompt; 10000 for the completion)."
        ),
    ),
    (
        "overflow",
        400,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {
                        "raw": json.dumps({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
                    },
                }
            }
        ),
    ),
    (
        "away",
        400,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": json.dumps({"error": {"message": "The model `x` has been decommissioned"}})},
                }
            }
        ),
    ),
    (
        "rate",
        429,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {"raw": "x/y:free is temporarily rate-limited upstream. Please retry shortly."},
                }
            }
        ),
    ),
    (
        "unavailable",
        400,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": json.dumps({"error": {"message": "overloaded", "code": 503}})},
                }
            }
        ),
    ),
    (
        "quota",
        402,
        json.dumps(
            {
                "error": {
                    "message": "This request requires more credits, or fewer max_tokens. You requested up to 8192 tokens, but can only afford 300.",
                    "code": 402,
                }
            }
        ),
    ),
    # array too long
    (
        "other",
        400,
        openai(
            "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2049 instead.",
            "array_above_max_length",
        ),
    ),
    (
        "other",
        400,
        openai(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
            "array_above_max_length",
        ),
    ),
    # Written after the code: 21 of these 31 were understood at first sight.
    (
        "feature reasoning_effort",
        400,
        openai("Invalid value for 'reasoning_effort': 'minimal'. Expected one of 'low', 'medium', 'high'."),
    ),
    ("feature reasoning_effort", 400, openai("reasoning_effort is not supported for model grok-code-fast-1")),
    ("feature reasoning_effort", 400, openai("Unknown parameter: 'reasoning_effort'.", param="reasoning_effort")),
    (
        "feature reasoning_effort",
        422,
        json.dumps({"error": {"message": 'parameter reasoning_effort: unsupported value "max"'}}),
    ),
    ("feature temperature", 400, openai("This model does not support custom temperature; use the default of 1.")),
    ("feature temperature", 400, openai("temperature is fixed at 1 for reasoning models")),
    ("feature stream", 400, openai("Streaming is not available for this deployment.")),
    ("feature stream", 400, openai("stream=true is not supported with this model")),
    (
        "feature cache_marks",
        400,
        openai("Additional properties are not allowed ('cache_control' was unexpected) - messages.0.content.0"),
    ),
    ("feature cache_marks", 400, json.dumps({"error": {"message": "Unrecognized key(s) in object: 'cache_control'"}})),
    ("feature thinking", 400, anthropic("thinking is not supported by this model")),
    ("feature thinking", 400, anthropic("thinking.type: Input should be 'enabled' or 'disabled'")),
    ("away", 400, openai("The model `gpt-4-32k` has been deprecated, learn more here", "model_not_found")),
    ("away", 400, json.dumps({"message": "model 'foo' is not available on this server"})),
    ("away", 404, openai("The requested model 'x' does not exist")),
    ("away", 400, json.dumps({"error": {"message": "No endpoints found for foo/bar.", "code": 404}})),
    ("away", 403, json.dumps({"error": {"message": "Project does not have access to model gpt-5"}})),
    ("key", 401, openai("Incorrect API key provided: sk-ab***. You can find your API key at ...", "invalid_api_key")),
    ("key", 400, json.dumps({"error": {"message": "Invalid API Key"}})),
    ("key", 400, json.dumps({"msg": "API key is missing or invalid"})),
    ("quota", 429, json.dumps({"error": {"message": "You have run out of credits. Please add funds."}})),
    ("quota", 429, openai("Monthly quota exhausted for this key")),
    (
        "quota",
        403,
        json.dumps(
            {
                "error": {
                    "message": "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
                    "code": 403,
                }
            }
        ),
    ),
    (
        "quota",
        400,
        json.dumps(
            {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}
        ),
    ),
    ("region", 403, json.dumps({"error": {"message": "This service is not available in your country"}})),
    (
        "unavailable",
        503,
        json.dumps({"error": {"message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}}),
    ),
    ("unavailable", 498, "{}"),
    (
        "overflow",
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
    ),
    (
        "overflow",
        400,
        json.dumps({"message": "The combined input and output tokens (40000) exceed the context window (32768)"}),
    ),
    ("rate", 429, json.dumps({"message": "Requests rate limit exceeded"})),
    ("rate", 429, openai("You've hit your usage limit for requests per minute. Try again in 12s.")),
    # Of 190 gathered from strangers' issues and pages (figures of their kinds at first sight: 121 of 134, 47 of 56;
    # of 50 about length 49), those that were taken for something else, and their neighbours.
    (
        "quota",
        429,
        '{"error": {"message": "Your prepaid credit balance has been used up.", "type": "billing_error", "code": "credit_balance_exhausted"}}',
    ),
    ("quota", 403, '{"error": {"message": "用户额度不足, 剩余额度: ¥0.000000", "type": "new_api_error"}}'),
    ("quota", 403, '{"error": {"message": "订阅额度不足或未配置订阅: 0", "type": "new_api_error"}}'),
    (
        "quota",
        403,
        '{"code": "The caller does not have permission to execute the specified operation", "error": "Your newly created team doesn\'t have any credits or licenses yet. You can purchase those on https://console.x.ai."}',
    ),
    (
        "away",
        400,
        '{"error": {"message": "Unable to access non-serverless model zai-org/GLM-5.1. Please visit https://api.together.ai/models/zai-org/GLM-5.1 to create and start a new dedicated endpoint for the model.", "type": "invalid_request_error", "param": null, "code": "model_not_available"}}',
    ),
    (
        "away",
        410,
        '{"type": "about:blank", "title": "Gone", "status": 410, "detail": "The model \'deepseek-ai/deepseek-v4-pro\' has reached its end of life on 2026-08-07T09:00:00Z and is no longer available."}',
    ),
    (
        "away",
        404,
        '{"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."}}',
    ),
    (
        "away",
        503,
        '{"error": {"code": "model_not_found", "message": "分组 default 下模型 gpt-9 无可用渠道（distributor） (request id: 2026)", "type": "new_api_error"}}',
    ),
    (
        "unavailable",
        424,
        '{"message": "The system encountered an unexpected error during processing. Try your request again."}',
    ),
    (
        "away",
        429,
        '{"error": {"code": "1311", "message": "Your current subscription plan does not yet include access to GLM-5V-Turbo"}}',
    ),
    (
        "quota",
        429,
        '{"error": {"message": "You have exceeded the monthly usage quota. It will reset at 2026-08-29 23:59:59 +0800 CST. We recommend upgrading your plan for more quota, or waiting for the reset. Request id: 0217", "type": "TooManyRequests", "code": "AccountQuotaExceeded"}}',
    ),
    (
        "away",
        400,
        '{"error": {"message": "The requested model is not supported.", "code": "model_not_supported", "param": "model", "type": "invalid_request_error"}}',
    ),
    (
        "away",
        403,
        '{"error": {"message": "The model: gpt-4-32k is not enabled on your account", "type": "invalid_request_error", "param": null, "code": null}}',
    ),
    ("away", 403, '{"code": 30003, "message": "Model disabled.", "data": null}'),
    (
        "rate",
        429,
        '{"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}}',
    ),
    (
        "rate",
        429,
        '{"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429, "metadata": {"headers": {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0"}}}}',
    ),
    (
        "rate",
        429,
        '{"code": 429, "reason": "TOKEN_LIMIT_EXCEEDED", "message": "Token limit exceeded. Please try again later.", "metadata": {}}',
    ),
    (
        "other",
        400,
        '{"error": {"message": "An assistant message with \'tool_calls\' must be followed by tool messages responding to each \'tool_call_id\'. (insufficient tool messages following tool_calls message)", "type": "invalid_request_error", "param": null, "code": null}}',
    ),
    # Of a stranger's 185 (figures in refusals.yaml), those that were taken for something else, and their neighbours.
    ("quota", 429, openai("The quota of Token Plan has been exhausted", "429", "limitation")),
    (
        "quota",
        429,
        '{"error": {"code": "1308", "message": "已达到 5 小时的使用上限。您的限额将在 2026-01-07 18:12:33 重置。"}}',
    ),
    ("rate", 429, '{"error": {"code": "1302", "message": "已达到每分钟使用上限，请稍后重试。"}}'),
    (
        "rate",
        429,
        '{"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded, please increase your quota limit."}',
    ),
    ("rate", 200, '{"error_code": 18, "error_msg": "Open api qps request limit reached"}'),
    ("rate", 200, '{"Response": {"Error": {"Code": "LimitExceeded", "Message": "并发数超过限制，请稍后重试"}}}'),
    (
        "quota",
        401,
        '{"error": {"message": "该令牌额度已用尽 TokenStatusExhausted[sk-a***z]", "type": "new_api_error"}}',
    ),
    ("quota", 500, anthropic("insufficient balance (1008)", "api_error")),
    ("key", 403, '{"message": "The security token included in the request is expired"}'),
]


def test_refusals_are_understood() -> None:
    for wanted, status, body in WORDINGS:
        error = classify(status, body, {})
        if wanted.startswith("not "):
            assert meaning(error) != wanted.removeprefix("not "), body
        else:
            assert meaning(error) == wanted, body
            assert is_away(error) == (wanted in ("away", "key", "region", "quota", "rate", "unavailable")), body


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, anthropic("A maximum of 4 blocks with cache_control may be provided. Found 5.")),
        (400, anthropic("messages.1: cache_control cannot be set for empty text blocks")),
        (400, openai("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.")),
        (400, openai("temperature must be between 0 and 1")),
        (400, openai("No tool output found for function call call_abc.")),
        (400, openai("messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")),
        (400, openai("The file 'notes.txt' that the model was given does not exist.".replace("the model", "you"))),
        (
            400,
            openai("Invalid value: 'developer'. Supported values are: 'system' and 'user'.", param="messages[0].role"),
        ),
        (429, openai("Rate limit reached on tokens per day (TPD): Limit 200000, Used 190000, Requested 1000.")),
        (400, anthropic("messages.5.content.0.thinking: each thinking block must contain thinking")),
    ],
)
def test_what_only_sounds_like_one_is_not_taken_for_one(status: int, body: str) -> None:
    error = classify(status, body, {})
    assert not isinstance(error, FeatureRefused | QuotaExceeded)
    assert "does not have this model" not in str(error)
    assert "refused the API key" not in str(error)


def test_a_routers_copy_of_the_vendors_answer_is_what_is_told() -> None:
    raw = json.dumps({"error": {"message": "messages: odd shape", "type": "invalid_request_error"}})
    body = json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}})
    assert "messages: odd shape" in str(classify(400, body, {}))
