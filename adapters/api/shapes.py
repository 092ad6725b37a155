"""What the requests and answers of OpenAI's Chat Completions look like. Pure: bytes in, data out, and the other way.

The format is https://platform.openai.com/docs/api-reference/chat. What is read, by a field's kind:

    known, and passed on to the model     `temperature`, `stop`, `seed`…       in `settings`, by their names here
    no turn can follow it                 `logit_bias`, `n: 2`, `audio`…       refused by name, unless it asks nothing
    changes nothing                       `store`, `service_tier`, strangers   passed over

Whatever is wrong with a request is an `ApiError`, which writes itself in OpenAI's shape.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError, convert, field
from msgspec import json as fast
from msgspec.structs import asdict

from gateway.domain.chat import Finish, Returns, Terms
from gateway.domain.message import ToolCall
from gateway.domain.usage import CanonicalUsage

MOST_TURNS: Final = 20_000  # messages of a request
MOST_TOOLS: Final = 128  # OpenAI's limit, too
MOST_SCHEMAS: Final = 400_000  # bytes of all tools' descriptions
MOST_IDENTIFIER: Final = 512  # characters of a user, of a chat's id
DONE: Final = b"data: [DONE]\n\n"
BEAT: Final = b": beat\n\n"  # a comment, which shows that the connection lives

Role = Literal["user", "assistant", "tool"]
_T = TypeVar("_T")


class ApiError(Exception):
    """A request has no answer but this. `kind` and `code` are OpenAI's words for programs; `param` is the field that
    is wrong, such as "messages[2].role". `retry_after`: seconds."""

    def __init__(
        self,
        status: int,
        text: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text)
        self.status, self.kind, self.code, self.param, self.retry_after = status, kind, code, param, retry_after

    def body(self) -> bytes:
        """The error as a JSON object."""
        told = {"message": sound(str(self)), "type": self.kind, "param": self.param, "code": self.code}
        return fast.encode({"error": told})

    def headers(self) -> dict[str, str]:
        """The headers that belong to it."""
        found = {} if self.retry_after is None else {"Retry-After": str(max(1, round(self.retry_after)))}
        return found | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


def invalid(param: str | None, text: str, code: str | None = None) -> ApiError:
    """400: a field has no meaning here."""
    return ApiError(400, text, param=param, code=code)


def no_key() -> ApiError:
    """401."""
    text = "The key is missing or unknown. Send `Authorization: Bearer KEY`. `legato keys add` makes a key."
    return ApiError(401, text, code="invalid_api_key")


def forbidden(text: str) -> ApiError:
    """403: the key may not do this."""
    return ApiError(403, text, kind="permission_error", code="permission_denied")


def no_model(name: str) -> ApiError:
    """404."""
    text = f"There is no model `{name[:100]}` here. GET /v1/models lists the models."
    return ApiError(404, text, code="model_not_found", param="model")


def no_route() -> ApiError:
    """404."""
    return ApiError(404, "There is nothing at this address. The API is below /v1.", code="not_found")


def too_large(most: int) -> ApiError:
    """413."""
    return ApiError(413, f"The request is too large: it may have at most {most:,} bytes.", code="request_too_large")


def busy(text: str, retry_after: float) -> ApiError:
    """429: too much at once."""
    return ApiError(429, text, kind="requests", code="rate_limit_exceeded", retry_after=retry_after)


def cap_reached(text: str, retry_after: float | None = None) -> ApiError:
    """429: a spend cap is used up."""
    return ApiError(429, text, kind="insufficient_quota", code="insufficient_quota", retry_after=retry_after)


def failed(text: str) -> ApiError:
    """502: the turn came to no answer, because of the model or its server."""
    return ApiError(502, text, kind="server_error", code="turn_failed")


def no_answer(text: str, fault: str, param: str, renewed_in: float) -> ApiError:
    """A turn came to no answer, by this fault (of `Returns`). `renewed_in`: seconds until there is a new cap."""
    if fault == "cap":
        return cap_reached(text, renewed_in)
    codes = {"request": "invalid_request", "length": "context_length_exceeded"}
    return invalid(param, text, codes[fault]) if fault in codes else failed(text)


def unavailable(text: str, retry_after: float = 5) -> ApiError:
    """503: nothing can be taken just now."""
    return ApiError(503, text, kind="server_error", code="unavailable", retry_after=retry_after)


# --- what is read ----------------------------------------------------------------------------


class Piece(Struct, frozen=True, kw_only=True):
    """A picture, recording or document in a message. `url`: as it came, nearly always a data URL; `param` names its
    field."""

    kind: Literal["image", "voice", "document"]
    url: str
    name: str = ""
    mime: str = ""
    param: str = ""

    @property
    def is_linked(self) -> bool:
        """Whether its content lies elsewhere."""
        return not self.url.startswith("data:")

    def content(self) -> tuple[str, bytes]:
        """Its type and its content, out of the data URL. Raises ApiError."""
        about, comma, data = self.url[5:].partition(",")
        mime, *marks = [part.strip().lower() for part in about.split(";")]
        try:
            if self.is_linked:
                raise invalid(
                    self.param, f"`{self.param}` must be a data URL, because Legato fetches nothing from other servers."
                )
            if not comma:
                raise ValueError
            padded = data + "=" * (-len(data) % 4)  # some clients leave out the signs at its end
            found = base64.b64decode(padded, validate=True) if "base64" in marks else unquote_to_bytes(data)
        except (ValueError, binascii.Error):
            raise invalid(
                self.param, f"`{self.param}` must be a data URL that can be read: data:TYPE;base64,CONTENT."
            ) from None
        return self.mime or mime or "application/octet-stream", found


class Turn(Struct, frozen=True, kw_only=True):
    """A visible message of a history: words, files and calls of tools; a tool's result answers `call_id`."""

    role: Role
    text: str = ""
    pieces: tuple[Piece, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A request, read. `system`: the client's instructions, all of them in one text. `turns`: the others, the last of
    which is a person's or a tool's. `tools` are function schemas as OpenAI writes them, and `tool_choice` is "auto",
    "none", "required" or the object that names a tool. `settings`: what is passed on to the model, by the names of Chat
    Completions; the cap of the output is `max_tokens` in any case."""

    model: str
    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str | Mapping[str, Any] = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    user: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def terms(self, results: Iterable[Turn] = ()) -> Terms:
        """The terms of its turn. `results`: those of tools which are new."""
        settings, tools, named = {**self.settings}, self.tools, ""
        if not isinstance(self.tool_choice, str):
            named = self.tool_choice["function"]["name"]
            tools = tuple([tool for tool in tools if tool["function"]["name"] == named])
        return Terms(
            max_tokens=settings.pop("max_tokens", None),
            settings=settings,
            tools=() if self.tool_choice == "none" else tools,
            must_call=bool(named) or self.tool_choice == "required",
            results=tuple([(turn.call_id, turn.text) for turn in results if turn.role == "tool"]),
        )

    def refuse_beyond(self, takes: Collection[str]) -> None:
        """Raise ApiError for a setting that the model does not take (`takes` of `Views`)."""
        for name in sorted(self.terms().wanted - frozenset(takes)):
            param = "response_format" if name == "json_object" else name
            raise invalid(param, f"The model does not accept this `{param}`. Leave it out.", "unsupported_parameter")

    @property
    def is_errand(self) -> bool:
        """Whether a front end asks for itself, and not a person: Open WebUI asks for a chat's title, tags and next
        questions like this, under the chat's own id. Such a request is not part of the conversation."""
        return len(self.turns) == 1 and self.turns[0].text.startswith("### Task:\n")


_Share = Annotated[float, Meta(ge=0, le=1)]
_Penalty = Annotated[float, Meta(ge=-2, le=2)]
_Most = Annotated[int, Meta(ge=1, le=10_000_000)]
_Word = Annotated[str, Meta(min_length=1, max_length=200)]


class _Settings(Struct, frozen=True, omit_defaults=True):
    """What is passed on unchanged."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: _Share | None = None
    stop: str | Annotated[list[str], Meta(max_length=16)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: _Word | None = None
    verbosity: _Word | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None  # these three: of servers of one's own
    min_p: _Share | None = None
    repetition_penalty: Annotated[float, Meta(ge=0, le=10)] | None = None
    parallel_tool_calls: bool | None = None


class _Url(Struct, frozen=True):
    url: str


class _Audio(Struct, frozen=True):
    data: str
    format: str = "wav"


class _File(Struct, frozen=True):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _Part(Struct, frozen=True):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: _Url | str | None = None
    input_audio: _Audio | None = None
    file: _File | None = None


class _Function(Struct, frozen=True):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(Struct, frozen=True):
    function: _Function
    id: str = ""


class _Message(Struct, frozen=True):
    role: str = ""
    content: str | list[_Part | str] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Named(Struct, frozen=True):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Tool(Struct, frozen=True):
    type: str = ""
    function: _Named | None = None


class _StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None


class _Body(_Settings, frozen=True, omit_defaults=True):
    model: str = ""
    messages: list[_Message] | UnsetType = UNSET
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: _Most | None = None
    max_completion_tokens: _Most | None = None
    user: Annotated[str, Meta(max_length=MOST_IDENTIFIER)] | None = None
    safety_identifier: Annotated[str, Meta(max_length=MOST_IDENTIFIER)] | None = None
    metadata: dict[str, Any] | None = None
    n: Any = None  # these are refused
    best_of: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    audio: Any = None
    modalities: Any = None
    web_search_options: Any = None
    functions: Any = None
    function_call: Any = None


# Fields that would change the answer and that no turn can follow, each with what asks for nothing.
_REFUSED: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "audio": (),
    "modalities": ([], ["text"]),
    "web_search_options": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
}
_INSTEAD: Final = {"functions": "send `tools` instead", "function_call": "send `tool_choice` instead"}
_DECODER: Final = fast.Decoder(_Body)
_SYSTEM: Final = ("system", "developer")
_ROLES: Final = ("user", "assistant", "tool")
_PLACE: Final = re.compile(r" - at (?:key in )?`\$\.?(.*)`$", re.DOTALL)
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SAFE_ID: Final = re.compile(r"[^\x00-\x1f\x7f]{1,256}")


def decoded(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises ApiError."""
    try:
        try:
            found = fast.decode(body)
        except DecodeError:
            if not _HALF.search(body):
                raise  # else it may be JavaScript's, which cuts a text in the midst of a character
            found = fast.decode(fast.encode(_sound_in(json.loads(body))))
    except (DecodeError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise invalid(None, f"The body is not valid JSON: {why}.", "invalid_json") from None
    if not isinstance(found, dict):
        raise invalid(None, "The body must be a JSON object.", "invalid_json")
    return found


def shaped(data: Any, shape: type[_T]) -> _T:
    """The data in this shape. Raises ApiError with the field that has another."""
    try:
        return convert(data, shape)
    except (ValidationError, RecursionError) as error:
        text = str(error)
        place = _PLACE.search(text)
        param = (place.group(1) if place else "") or None
        why = text[: place.start()] if place else text
        raise invalid(param, f"`{param or 'The body'}` is wrong: {why[:1].lower()}{why[1:]}.") from None


def read_chat(body: bytes) -> ChatRequest:
    """The request in the body of a call. Raises ApiError."""
    try:
        asked = _DECODER.decode(body)
    except (DecodeError, ValueError, RecursionError):
        asked = shaped(decoded(body), _Body)  # step by step: it says what is wrong
    return _read(asked)


def read(data: Mapping[str, Any], *, goes_on: bool = False) -> ChatRequest:
    """The request in these fields. `goes_on`: it continues a history that is known here. Raises ApiError."""
    return _read(shaped(data, _Body), goes_on=goes_on)


def _read(asked: _Body, *, goes_on: bool = False) -> ChatRequest:
    refuse({name: getattr(asked, name) for name in _REFUSED}, _REFUSED)
    if not asked.model:
        raise invalid("model", "`model` is missing. GET /v1/models lists the models.")
    if not asked.messages:
        raise invalid("messages", "`messages` must contain at least one message.")
    if len(asked.messages) > MOST_TURNS:
        raise invalid("messages", f"`messages` may hold at most {MOST_TURNS:,} messages, not {len(asked.messages):,}.")
    system, turns = _turns(asked.messages, goes_on=goes_on)
    tools = _tools(asked.tools or ())
    return ChatRequest(
        model=asked.model,
        turns=turns,
        system=system,
        tools=tools,
        tool_choice=_choice(asked.tool_choice, tools),
        settings=_settings(asked),
        stream=bool(asked.stream),
        include_usage=bool(asked.stream_options and asked.stream_options.include_usage),
        user=asked.user or asked.safety_identifier or "",
        metadata={name: str(value) for name, value in (asked.metadata or {}).items() if isinstance(value, str | int)},
    )


def refuse(data: Mapping[str, Any], refused: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise ApiError for the first of these fields that asks for something."""
    for name, nothing in refused.items():
        value = data.get(name)
        if value is not None and not any(value == each and type(value) is type(each) for each in nothing):
            instead = _INSTEAD.get(name, "leave it out")
            raise invalid(name, f"`{name}` is not supported here: {instead}.", "unsupported_parameter")


def _settings(asked: _Body) -> dict[str, Any]:
    found = {name: value for name in _Settings.__struct_fields__ if (value := getattr(asked, name)) is not None}
    if (cap := asked.max_completion_tokens or asked.max_tokens) is not None:
        found["max_tokens"] = cap
    if isinstance(stop := found.get("stop"), str):
        found["stop"] = [stop]
    if (form := found.get("response_format")) is not None:
        kind, schema = form.get("type"), form.get("json_schema")
        if kind not in ("text", "json_object", "json_schema"):
            raise invalid("response_format.type", "`response_format.type` must be text, json_object or json_schema.")
        if kind == "json_schema" and not (isinstance(schema, dict) and isinstance(schema.get("schema", {}), dict)):
            raise invalid("response_format.json_schema", "`response_format.json_schema` must have a name and a schema.")
        if kind == "text":
            del found["response_format"]
    return found


def _tools(tools: Sequence[_Tool]) -> tuple[Mapping[str, Any], ...]:
    if len(tools) > MOST_TOOLS:
        raise invalid("tools", f"`tools` may hold at most {MOST_TOOLS} tools, not {len(tools):,}.")
    made: list[Mapping[str, Any]] = []
    names: set[str] = set()
    for at, tool in enumerate(tools):
        param = f"tools[{at}]"
        if tool.type != "function" or tool.function is None:
            raise invalid(f"{param}.type", f"`{param}` must be a function, because no other kind of tool works here.")
        if tool.function.name in names:
            raise invalid(f"{param}.function.name", f"`tools` contains two tools named {tool.function.name}.")
        names.add(tool.function.name)
        about = {name: value for name, value in asdict(tool.function).items() if value is not None}
        made.append({"type": "function", "function": {"parameters": {"type": "object", "properties": {}}, **about}})
    if made and len(written(made)) > MOST_SCHEMAS:
        raise invalid(
            "tools", f"The descriptions in `tools` are too long: they may have at most {MOST_SCHEMAS:,} bytes."
        )
    return tuple(made)


def _choice(choice: str | Mapping[str, Any] | None, tools: Sequence[Mapping[str, Any]]) -> str | Mapping[str, Any]:
    if choice is None or (not tools and choice in ("auto", "none")):
        return "auto"
    names = [tool["function"]["name"] for tool in tools]
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            raise invalid("tool_choice", "`tool_choice` must be auto, none or required, or name a function in `tools`.")
        if choice == "required" and not names:
            raise invalid("tool_choice", "`tool_choice` asks for a tool, but `tools` is empty.")
        return choice
    named = choice.get("function")
    name = named.get("name") if isinstance(named, dict) else choice.get("name")
    if choice.get("type") != "function" or name not in names:
        raise invalid("tool_choice", "`tool_choice` must name a function that is in `tools`.")
    return {"type": "function", "function": {"name": name}}


def _turns(messages: Sequence[_Message], *, goes_on: bool) -> tuple[str, tuple[Turn, ...]]:
    """The instructions of a history, and its visible turns."""
    system: list[str] = []
    turns: list[Turn] = []
    open_calls: set[str] = set()
    for at, message in enumerate(messages):
        # Nearly every message is only words: read without a call.
        if message.role in ("user", "assistant") and isinstance(message.content, str) and not message.tool_calls:
            if message.role == "user":
                turns.append(Turn(role="user", text=message.content, name=message.name or ""))
            else:
                turns.append(Turn(role="assistant", text=message.content))
            continue
        param = f"messages[{at}]"
        if message.role in _SYSTEM:
            system.append(_words(message, param)[0])
            continue
        turn = _turn(message, param)
        if turn.role == "tool" and turn.call_id not in open_calls and not goes_on:
            text = f"`{param}` is the result of a call, but no earlier message makes this call."
            raise invalid(f"{param}.tool_call_id", text)
        if turn.calls:
            open_calls.update(call["id"] for call in turn.calls)
        turns.append(turn)
    if not turns:
        raise invalid("messages", "`messages` must contain a message with the role user.")
    if turns[-1].role == "assistant":
        raise invalid("messages", "The last of `messages` must come from a user, or be the result of a tool.")
    return "\n\n".join(filter(str.strip, system)), tuple(turns)


def _turn(message: _Message, param: str) -> Turn:
    if message.role not in _ROLES:
        raise invalid(f"{param}.role", f"`{param}.role` must be system, developer, user, assistant or tool.")
    text, pieces = (message.content, ()) if isinstance(message.content, str) else _words(message, param)
    if message.role == "tool":
        if not _SAFE_ID.fullmatch(message.tool_call_id or ""):
            raise invalid(
                f"{param}.tool_call_id",
                f"`{param}.tool_call_id` must be the id of the call that this message answers.",
            )
        return Turn(role="tool", text=text, pieces=pieces, call_id=message.tool_call_id or "", name=message.name or "")
    if message.role == "assistant":
        calls = tuple(_call(call, f"{param}.tool_calls[{n}]") for n, call in enumerate(message.tool_calls or ()))
        return Turn(role="assistant", text=text or message.refusal or "", pieces=pieces, calls=calls)
    return Turn(role="user", text=text, pieces=pieces, name=message.name or "")


def _call(call: _Call, param: str) -> ToolCall:
    if not _SAFE_ID.fullmatch(call.id):
        raise invalid(f"{param}.id", f"`{param}.id` must be the id of a call.")
    arguments = call.function.arguments
    written = arguments if isinstance(arguments, str) else fast.encode(arguments or {}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": written}}


def _words(message: _Message, param: str) -> tuple[str, tuple[Piece, ...]]:
    """The words of a message, and its files."""
    if not isinstance(message.content, list):
        return message.content or "", ()
    said: list[str] = []
    pieces: list[Piece] = []
    for at, part in enumerate(message.content):
        place = f"{param}.content[{at}]"
        if isinstance(part, str):
            said.append(part)
        elif (words := part.text if part.type in ("text", "input_text", "output_text") else part.refusal) is not None:
            said.append(words)
        elif (piece := _piece(part, place)) is not None:
            pieces.append(piece)
        elif message.role != "assistant":  # of answers, thoughts come back in many shapes
            text = f"`{place}` must be of type text, image_url, input_audio or file."
            raise invalid(f"{place}.type", text)
    return "\n".join(said), tuple(pieces)


def _piece(part: _Part, place: str) -> Piece | None:
    if part.type == "image_url" and part.image_url is not None:
        url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
        return Piece(kind="image", url=url, param=f"{place}.image_url.url")
    if part.type == "input_audio" and part.input_audio is not None:
        sound = part.input_audio
        url = sound.data if sound.data.startswith("data:") else f"data:audio/{sound.format};base64,{sound.data}"
        return Piece(kind="voice", url=url, name=f"voice.{sound.format}", param=f"{place}.input_audio.data")
    if part.type == "file" and part.file is not None:
        if part.file.file_data is None:
            text = f"`{place}.file` must contain file_data, because files have no ids here."
            raise invalid(f"{place}.file.file_id", text)
        data = part.file.file_data
        url = data if data.startswith(("data:", "http")) else f"data:;base64,{data}"
        return Piece(kind="document", url=url, name=part.file.filename or "", param=f"{place}.file.file_data")
    return None


# --- what is written -------------------------------------------------------------------------


class Wire(Protocol):
    """An API's words for an answer: `whole`, or the events of a stream: `opening`, any number of `words`, `thought` and
    `BEAT`, and `ending` or `failure`."""

    def whole(self, text: str, returns: Returns) -> bytes:
        """The body of an answer that is not streamed."""

    def opening(self) -> bytes:
        """Say that it begins."""

    def words(self, text: str) -> bytes:
        """More of the answer."""

    def thought(self, text: str) -> bytes:
        """What is done on the way to the answer."""

    def ending(self, text: str, returns: Returns) -> bytes:
        """Say that it has ended. `text`: all of its words."""

    def failure(self, error: ApiError) -> bytes:
        """Say that there is no answer."""


class Chunks(Struct, frozen=True, kw_only=True):
    """`Wire` of Chat Completions. `created`: seconds since the epoch."""

    id: str
    model: str
    created: int
    include_usage: bool = False

    def whole(self, text: str, returns: Returns) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if returns.calls:
            message |= {"content": text or None, "tool_calls": returns.calls}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": returns.finish}
        return written(self._facts("chat.completion", [choice]) | {"usage": usage_of(returns.usage)})

    def opening(self) -> bytes:
        return self._event({"role": "assistant", "content": ""})

    def words(self, text: str) -> bytes:
        return self._event({"content": text})

    def thought(self, text: str) -> bytes:  # clients that do not know the field pass it over
        return self._event({"reasoning_content": text})

    def ending(self, text: str, returns: Returns) -> bytes:
        made = [self._event({"tool_calls": [{"index": at, **call}]}) for at, call in enumerate(returns.calls)]
        made.append(self._event({}, returns.finish))
        if self.include_usage:
            made.append(self._chunk([], usage_of(returns.usage)))
        return b"".join((*made, DONE))

    def failure(self, error: ApiError) -> bytes:
        return b"data: " + error.body() + b"\n\n" + DONE

    def _event(self, delta: Mapping[str, Any], finish: Finish | None = None) -> bytes:
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], None)

    def _chunk(self, choices: Sequence[Mapping[str, Any]], usage: Mapping[str, Any] | None) -> bytes:
        facts = self._facts("chat.completion.chunk", choices) | ({"usage": usage} if self.include_usage else {})
        return b"data: " + written(facts) + b"\n\n"

    def _facts(self, kind: str, choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def usage_of(usage: CanonicalUsage) -> dict[str, Any]:
    """The tokens of an answer, as Chat Completions counts them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def model_facts(name: str, created: int) -> dict[str, Any]:
    """A model, as `/v1/models/NAME` tells of it."""
    return {"id": name, "object": "model", "created": created, "owned_by": "legato"}


def model_list(names: Iterable[str], created: int) -> bytes:
    """The body of `/v1/models`."""
    return written({"object": "list", "data": [model_facts(name, created) for name in names]})


def sound(text: str) -> str:
    """The text without halves of characters, which JSON cannot carry."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def written(facts: Any) -> bytes:
    """Facts as JSON."""
    try:
        return fast.encode(facts)
    except UnicodeEncodeError:
        return fast.encode(_sound_in(facts))


def _sound_in(facts: Any) -> Any:
    if isinstance(facts, str):
        return sound(facts)
    if isinstance(facts, Mapping):
        return {sound(name): _sound_in(value) for name, value in facts.items()}
    return [_sound_in(each) for each in facts] if isinstance(facts, list | tuple) else facts
