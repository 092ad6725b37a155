"""Real-world style refusals, and what each of them must mean."""

# ruff: noqa: E501 - a body is easier to compare with the real one on few lines

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.errors import classify, retry_after
from gateway.runtime.errors import (
    ContentRefused,
    ContextOverflow,
    OutputCapTooLarge,
    PicturesRefused,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def anthropic(message: str, kind: str = "invalid_request_error") -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


def openrouter(raw: str) -> str:
    metadata = {"raw": json.dumps({"error": {"message": raw}}), "provider_name": "Somebody"}
    return json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}})


@pytest.mark.parametrize("text", ["Bad Request", "Provider returned error", "请求错误", "<html>400 Bad Request</html>"])
def test_a_refusal_that_names_no_fault_is_marked(text: str) -> None:
    for status, marked in ((400, True), (422, True), (404, False), (405, False)):
        error = classify(status, json.dumps({"error": {"message": text}}), {})
        assert isinstance(error, ProviderRejected)
        assert error.unexplained is marked


@pytest.mark.parametrize(
    "text",
    [
        "Unsupported value: 'temperature' does not support 0.7 with this model.",
        "messages: roles must alternate between user and assistant",
        "Invalid schema for function 'clock'",
        "max_tokens and max_completion_tokens cannot be set at the same time",
        "Your account has no active plan",
    ],
)
def test_a_refusal_that_names_its_fault_is_not_taken_for_a_matter_of_length(text: str) -> None:
    error = classify(400, json.dumps({"error": {"message": text}}), {})
    assert not getattr(error, "unexplained", False)


# (status, body, the window it states)
OVERFLOWS: list[tuple[int, str, int | None]] = [
    (
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 10249 tokens. "
            "Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        8192,
    ),
    (
        400,
        openai(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "context_length_exceeded",
        ),
        None,
    ),
    (
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. "
            "Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
        272_000,
    ),
    (
        400,
        openai(
            "This model's maximum context length is 4097 tokens. However, you requested 5100 tokens (5000 in the "
            "messages, 100 in the completion). Please reduce the length of the messages or completion.",
            "context_length_exceeded",
        ),
        4097,
    ),
    (400, openai("Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, "
                 "but got a string with length 11000000 instead.", "string_above_max_length"), None),
    (400, anthropic("prompt is too long: 205346 tokens > 200000 maximum"), 200_000),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"), None),
    (
        400,
        openai(
            "This endpoint's maximum context length is 128000 tokens. However, you requested about 141000 tokens "
            "(136000 of text input, 1000 of tool input, 4000 in the output). Please reduce the length of either one, "
            'or use the "middle-out" transform to compress your prompt automatically.'
        ),
        128_000,
    ),
    (400, openrouter("prompt is too long: 210000 tokens > 200000 maximum"), 200_000),
    # vLLM, four generations
    (
        400,
        json.dumps(
            {
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. However, you requested 6000 tokens in "
                "the messages, Please reduce the length of the messages.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        ),
        4096,
    ),
    (
        400,
        openai("The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that "
               "`max_model_len` is no smaller than the number of text tokens."),
        8192,
    ),
    (400, openai("Input length (9000) exceeds model's maximum context length (8192)."), 8192),
    (
        400,
        openai("You passed 8193 input tokens and requested 1000 output tokens. However, the model's context length is "
               "only 8192 tokens, resulting in a maximum input length of 7192 tokens. Please reduce the length of the "
               "input prompt."),
        8192,
    ),
    # SGLang
    (400, json.dumps({"object": "error", "message": "The input (140000 tokens) is longer than the model's context "
                      "length (131072 tokens).", "code": 400}), 131_072),
    # TGI
    (422, json.dumps({"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
                      "error_type": "validation"}), 4095),
    # llama.cpp, old (500) and new
    (500, openai("the request exceeds the available context size. try increasing the context size or enable context "
                 "shift", kind="server_error"), None),
    (
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "request (5013 tokens) exceeds the available context size (4096 tokens), try increasing it",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 5013,
                    "n_ctx": 4096,
                }
            }
        ),
        4096,
    ),
    # LM Studio
    (400, json.dumps({"error": "Trying to keep the first 5013 tokens when context the overflows. However, the model is "
                      "loaded with context length of only 4096 tokens, which is not enough. Try to load the model with "
                      "a larger context length, or provide a shorter input"}), 4096),
    (400, json.dumps({"error": "The number of tokens to keep from the initial prompt is greater than the context "
                      "length (n_keep: 5013>= n_ctx: 4096). Try to load the model with a larger context length"}), 4096),
    # Ollama
    (400, json.dumps({"error": "the input length exceeds the context length"}), None),
    (500, json.dumps({"error": "prompt too long; exceeded max context length by 113 tokens"}), None),
    # Gemini
    (
        400,
        json.dumps([{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of "
                               "tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
        1_048_576,
    ),
    # DeepSeek
    (
        400,
        openai("This model's maximum context length is 65536 tokens. However, you requested 74096 tokens (70000 in the "
               "messages, 4096 in the completion). Please reduce the length of the messages or completion."),
        65_536,
    ),
    # Qwen (DashScope)
    (400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"), 129_024),
    (400, '{"code":"InvalidParameter","message":"\\u8f93\\u5165\\u957f\\u5ea6\\u8d85\\u8fc7\\u6a21\\u578b\\u9650\\u5236"}', None),
    # Zhipu
    (400, json.dumps({"error": {"code": "1261", "message": "Prompt 超长"}}), None),
    (400, json.dumps({"error": {"code": "1261", "message": "Prompt exceeds max length"}}), None),
    # Moonshot, MiniMax, Baidu and others
    (400, openai("Invalid request: Your request exceeded model token limit: 131072 (requested: 140002)"), 131_072),
    (400, openai("Input token length too long", "invalid_request_error"), None),
    (400, json.dumps({"error": {"message": "invalid params, context window exceeds limit (2013)"}}), None),
    (400, json.dumps({"error": {"message": "输入内容过长，超出最大长度限制，最大 32768 tokens"}}), 32_768),
    (400, json.dumps({"msg": "请求的上下文长度超过模型上限 8192"}, ensure_ascii=False), 8192),
    # Mistral, Cohere, xAI, Fireworks, Copilot, GitHub Models, Cerebras, Bedrock
    (400, json.dumps({"object": "error", "message": "Prompt contains 40210 tokens and 0 draft tokens, too large for "
                      "model with 32768 maximum context length", "type": "invalid_request_error"}), 32_768),
    (400, json.dumps({"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received "
                      "5012."}), 4081),
    (400, json.dumps({"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is "
                      "131072 but the request contains 537812 tokens."}), 131_072),
    (400, openai("The prompt is too long: 140000, model maximum context length: 131071"), 131_071),
    (400, openai("prompt token count of 130412 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded"), 128_000),
    (413, openai("Request body too large for gpt-4o model. Max size: 8000 tokens.", "tokens_limit_reached"), 8000),
    (400, openai("Please reduce the length of the messages or completion. Current length is 9011 while limit is 8192",
                 "context_length_exceeded"), 8192),
    (400, json.dumps({"message": "Input is too long for requested model."}), None),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", None),
    (200, openai("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                 "context_length_exceeded"), 8192),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "bulky"),
    [
        (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", True),
        (413, anthropic("Request exceeds the maximum size", "request_too_large"), True),
        (413, openai("Request body too large for gpt-4o model. Max size: 8000 tokens."), False),
        (400, json.dumps({"message": "Input is too long for requested model."}), False),
    ],
)
def test_a_body_may_be_too_large_in_bytes_where_nothing_is_said_of_tokens(status: int, body: str, bulky: bool) -> None:
    error = classify(status, body, {})
    assert isinstance(error, ContextOverflow)
    assert error.bulky == bulky


# (status, body, tokens there is room for)
OUTPUT_CAPS: list[tuple[int, str, int | None]] = [
    (
        400,
        openai("This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the "
               "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
               "context_length_exceeded"),
        3097,
    ),
    (
        400,
        openai("This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the "
               "messages, 200 in the functions, and 3800 in the completion)."),
        2897,
    ),
    (400, openai("max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you "
                 "provided 200000."), 16_384),
    (400, anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length "
                    "or `max_tokens` and try again"), 10_000),
    (400, anthropic("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for a model"),
     64_000),
    (400, openai("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is "
                 "8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000)."), 3192),
    (400, openai("You passed 7000 input tokens and requested 2000 output tokens. However, the model's context length is "
                 "only 8192 tokens"), 1192),
    (400, openai("Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a "
                 "total of 140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion."),
     1072),
    (422, json.dumps({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 "
                      "`inputs` tokens and 500 `max_new_tokens`"}), 96),
    (400, openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), 8192),
    (400, openai("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]"), 8192),
    (400, openai("This endpoint's maximum context length is 128000 tokens. However, you requested about 131000 tokens "
                 "(121000 of text input, 10000 in the output). Please reduce the length of either one."), 7000),
]  # fmt: skip

OTHERS: list[tuple[int, str, type[ProviderError]]] = [
    (401, openai("Incorrect API key provided: sk-abc. You can find your API key at …", "invalid_api_key"), ProviderRejected),
    (403, "<html>Forbidden</html>", ProviderRejected),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"), ProviderRejected),
    (400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                 "instead.", "unsupported_parameter"), ProviderRejected),
    (400, openai("Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, "
                 "but got a string with length 52 instead.", "string_above_max_length"), ProviderRejected),
    (400, openai("max_tokens must be at least 1, got 0"), ProviderRejected),
    (400, openai("An assistant message with 'tool_calls' must be followed by tool messages"), ProviderRejected),
    (400, anthropic("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
     ProviderRejected),
    (400, openai("Unknown parameter: 'context_length'.", "unknown_parameter"), ProviderRejected),
    (422, "", ProviderRejected),
    (301, "", ProviderRejected),
    (402, openai("This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can "
                 "only afford 1213."), QuotaExceeded),
    (429, openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota",
                 "insufficient_quota"), QuotaExceeded),
    (429, openai("You exceeded your current quota of requests per day.", "insufficient_quota"), QuotaExceeded),
    (400, anthropic("Your credit balance is too low to access the API."), QuotaExceeded),
    (403, json.dumps({"error": {"message": "账户余额不足，请充值"}}), QuotaExceeded),
    (400, openai("Budget has been exceeded! Current cost: 26.075, Max budget: 0.25", kind="budget_exceeded"),
     QuotaExceeded),
    (429, openai("ExceededBudget: User=u over budget. Spend=10.6, Budget=10.0", kind="budget_exceeded"), QuotaExceeded),
    (403, openai("Your account org-x is not active, organization <org-x> exceeded current quota, please check your plan "
                 "and billing details", kind="exceeded_current_quota_error"), QuotaExceeded),
    (429, openai("Your account [2100334555] has reached the set inference limit for the [glm-5.3] model, and the model "
                 "service has been paused.", "SetLimitExceeded", "TooManyRequests"), QuotaExceeded),
    (429, anthropic("Extra usage is required for long context requests.", "rate_limit_error"), QuotaExceeded),
    (403, openai("user quota is not enough (request id: 2024)", "insufficient_user_quota", "one_api_error"),
     QuotaExceeded),
    (403, openai("The request failed because your account has an overdue balance.", "AccountOverdueError", "Forbidden"),
     QuotaExceeded),
    (400, openai("The request could not be processed because the input text includes sensitive content that violates "
                 "ContentSecurityDetection.", "InputTextRiskDetection", "BadRequest"), ContentRefused),
    (429, openai("Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, "
                 "Requested 4000. Please try again in 6s.", "rate_limit_exceeded", "tokens"), ProviderRateLimited),
    (429, anthropic("This request would exceed your organization's rate limit of 40,000 input tokens per minute",
                    "rate_limit_error"), ProviderRateLimited),
    (400, json.dumps({"message": "Too many tokens, please wait before trying again."}), ProviderRateLimited),
    (429, json.dumps([{"error": {"code": 429, "message": "You exceeded your current quota. Please retry in 34.07s.",
                                 "status": "RESOURCE_EXHAUSTED"}}]), ProviderRateLimited),
    (200, json.dumps({"error": {"code": 429, "message": "Provider returned error"}}), ProviderRateLimited),
    (429, "", ProviderRateLimited),
    (500, openai("The server had an error while processing your request", kind="server_error"), ProviderUnavailable),
    (502, "<html><h1>502 Bad Gateway</h1></html>", ProviderUnavailable),
    (529, anthropic("Overloaded", "overloaded_error"), ProviderUnavailable),
    (200, anthropic("Overloaded", "overloaded_error"), ProviderUnavailable),
    (200, json.dumps({"error": {"message": "context canceled"}}), ProviderUnavailable),
    (200, json.dumps({"error": {"message": "Empty response: the model returned 0 tokens", "code": 502}}),
     ProviderUnavailable),
    (400, json.dumps({"error": "model is currently loading, try again later"}), ProviderUnavailable),
    (400, openai("Invalid content type. image_url is only supported by certain models."), PicturesRefused),
    (404, openai("No endpoints found that support image input"), PicturesRefused),
    (400, openai("Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, "
                 "expected `text`"), PicturesRefused),
    (500, json.dumps({"error": {"code": 500, "message": 'Failed to parse messages: Unsupported content part type: '
                                '"image_url"', "type": "server_error"}}), PicturesRefused),
    (400, openai("llama is not a multimodal model"), PicturesRefused),
    (400, openai("At most 0 image(s) may be provided in one prompt."), PicturesRefused),
    (400, json.dumps({"error": "Model does not support images. Please use a model that does."}), PicturesRefused),
    (400, openai("'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a "
                 "string)]"), ProviderRejected),
    (400, json.dumps({"error": {"message": "该模型不支持图片输入"}}), PicturesRefused),
    (400, openai("Could not process image"), ProviderRejected),
    (408, "", ProviderUnavailable),
]  # fmt: skip


def test_prompt_too_long() -> None:
    wrong = []
    for status, body, limit in OVERFLOWS:
        error = classify(status, body, {})
        if not isinstance(error, ContextOverflow) or error.limit != limit:
            wrong.append(f"{error!r} without the limit {limit}: {status} {body}")
    assert not wrong, "\n".join(wrong)


def test_output_cap_too_large() -> None:
    wrong = []
    for status, body, available in OUTPUT_CAPS:
        error = classify(status, body, {})
        if not isinstance(error, OutputCapTooLarge) or error.available != available:
            wrong.append(f"{error!r} without the room {available}: {status} {body}")
    assert not wrong, "\n".join(wrong)


def test_everything_else() -> None:
    wrong = [
        f"{error!r} is no {kind.__name__}: {status} {body}"
        for status, body, kind in OTHERS
        if type(error := classify(status, body, {})) is not kind
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "20"}, "", 20.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        (
            {"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            "",
            30.0,
        ),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:30 GMT"}, "", 0.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", None),
        ({"Retry-After": "Wed, 21 Oct 99999999999 07:28:00 GMT"}, "retry in 5s", 5.0),
        ({"Retry-After": "soon"}, "try again in 6m2.5s", 362.5),
        ({}, "please try again in 20s.", 20.0),
        ({}, "please try again in 300ms.", 0.3),
        ({}, '"retrydelay": "34s"', 34.0),
        ({}, "try again in a while", None),
        ({}, "", None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], body: str, seconds: float | None) -> None:
    assert retry_after(headers, body) == seconds


@pytest.mark.parametrize(
    ("host", "hint"),
    [
        ("api.moonshot.cn", " If your key is for the other region, set model.base_url to api.moonshot.ai."),
        ("api.moonshot.ai", " If your key is for the other region, set model.base_url to api.moonshot.cn."),
        ("api.openai.com", ""),
    ],
)
def test_a_key_that_is_refused_may_be_of_another_region(host: str, hint: str) -> None:
    said = str(classify(401, openai("Invalid Authentication", "invalid_authentication_error"), {}, host=host))
    assert said == f"The provider refused the API key: Invalid Authentication. Check model.api_key.{hint}"


@pytest.mark.parametrize(
    ("status", "code", "kind", "expected"),
    [
        (200, 429, ProviderRateLimited, 429),
        (200, 503, ProviderUnavailable, 503),
        (200, 401, ProviderRejected, 401),
        (200, None, ProviderUnavailable, 200),
        (503, 400, ProviderUnavailable, 503),
    ],
)
def test_an_error_inside_a_success_has_its_own_status(
    status: int, code: int | None, kind: type[ProviderError], expected: int
) -> None:
    error = classify(status, json.dumps({"error": {"message": "no", "code": code}}), {})
    assert (type(error), error.status) == (kind, expected)


def test_the_wait_reaches_the_error() -> None:
    error = classify(429, "", {"retry-after": "7"})
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == 7
    assert "7 s" in str(error)


def test_texts_are_redacted_before_they_are_cut() -> None:
    secret = "sk-" + "x" * 400

    def redact(text: str) -> str:
        return text.replace(secret, "[REDACTED]")

    text = str(classify(401, openai(f"Incorrect API key provided: {secret}"), {}, redact=redact))
    assert "xxx" not in text
    assert "[REDACTED]" in text


def test_texts_stay_short_and_say_what_to_do() -> None:
    text = str(classify(400, openai("no " * 3000), {}))
    assert len(text) < 400
    assert f": {'x' * 199}…" in str(classify(400, openai("x" * 201), {}))
    assert "x" * 200 in str(classify(400, openai("x" * 200), {}))
    assert "/model" in text
    assert "<html" not in str(classify(502, "<html>" + "x" * 5000, {}))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "detail", "status"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(status=st.integers(200, 599), body=JSON.map(json.dumps) | st.text(max_size=60))
def test_any_body_gives_some_provider_error(status: int, body: str) -> None:
    assert isinstance(classify(status, body, {}), ProviderError)


@pytest.mark.parametrize(
    ("status", "text", "limit"),
    [
        (
            429,
            "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 42362. "
            "The input or output tokens must be reduced in order to run successfully.",
            30_000,
        ),
        (
            413,
            "Request too large for model `llama` in organization `org` on tokens per minute (TPM): Limit 6000, "
            "Requested 9013, please reduce your message size and try again.",
            6_000,
        ),
    ],
)
def test_a_request_larger_than_a_minute_is_an_overflow_of_one_call(status: int, text: str, limit: int) -> None:
    error = classify(status, openai(text, "rate_limit_exceeded", "tokens"), {"retry-after": "8"})
    assert isinstance(error, ContextOverflow)
    assert (error.limit, error.lasting) == (limit, False)


def test_a_request_that_has_to_wait_for_its_minute_is_none() -> None:
    text = "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30,000, Used 29,000, Requested 4,236."
    error = classify(429, openai(text, "rate_limit_exceeded", "tokens"), {"retry-after": "8"})
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == 8


@pytest.mark.parametrize("status", [503, 529])
def test_an_overloaded_provider_may_say_how_long_to_wait(status: int) -> None:
    error = classify(status, anthropic("Overloaded", "overloaded_error"), {"Retry-After": "12"})
    assert isinstance(error, ProviderUnavailable)
    assert error.retry_after == 12


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, '{"error": {"code": "content_filter", "message": "The request was rejected"}}'),
        (400, '{"error": {"code": "invalid_prompt", "message": "flagged as potentially violating our usage policy"}}'),
        (400, '{"error": {"message": "Output blocked by content filtering policy"}}'),
        (400, '{"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}'),
        (400, '{"error": {"message": "Content Exists Risk"}}'),
        (403, '{"error": {"message": "Your chosen model requires moderation and your input was flagged"}}'),
        (200, '{"error": {"code": "content_filter", "message": "stopped"}}'),
    ],
)
def test_a_content_filter_is_told_from_a_wrong_request(status: int, body: str) -> None:
    assert isinstance(classify(status, body, {}), ContentRefused)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, '{"error": {"message": "Unknown parameter: content_filter"}}'),
        (403, '{"error": {"message": "Your key may not use this model"}}'),
        (500, '{"error": {"message": "content_filter failed"}}'),
    ],
)
def test_what_only_mentions_a_filter_is_none(status: int, body: str) -> None:
    assert not isinstance(classify(status, body, {}), ContentRefused)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            403,
            '{"error": {"code": "unsupported_country_region_territory", "message": "Country, region, or territory not supported", "type": "request_forbidden"}}',
        ),
        (
            400,
            '{"error": {"code": 400, "message": "User location is not supported for the API use.", "status": "FAILED_PRECONDITION"}}',
        ),
        (403, '{"error": "This service is not available in your region."}'),
        (451, "unavailable: not served from your country"),
        (403, '{"message": "当前地区不支持访问"}'),
    ],
)
def test_a_block_of_a_region_is_no_wrong_key(status: int, body: str) -> None:
    error = classify(status, body, {})
    assert isinstance(error, ProviderRejected)
    assert str(error).startswith("The provider does not serve this machine")
    assert "api_key" not in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, '{"error": {"message": "Incorrect API key provided"}}'),
        (403, '{"error": {"message": "Your key may not use this project."}}'),
        (400, "Invalid model context: model 'x' not found in this region"),
    ],
)
def test_other_refusals_are_none(status: int, body: str) -> None:
    assert "country" not in str(classify(status, body, {}))
