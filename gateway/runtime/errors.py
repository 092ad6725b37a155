"""Every error that crosses a room's wall, and nothing else.

Foreign exceptions are mapped to these once, at the edge where they appear. The text of an
error is one sentence that says what happened and what to do next; a `UserError`'s text is
shown to the person verbatim.

GatewayError
├── ConfigError                 the configuration cannot be used; `problems` lists every reason
├── UserError                   the person asked for something that cannot be done
│   └── SpendCapReached         a spend cap leaves no room for the call; nothing was sent
├── StoreError
│   ├── SessionNotFound
│   ├── SessionConflict         a write carried a stale epoch or fence; nothing was written
│   ├── StoreLocked             another gateway process owns the store
│   └── StoreUnavailable        disk full, unwritable, corrupt, unreachable
├── ToolError                   shown to the model as the tool's result
│   └── ToolDenied
├── AdapterError
│   ├── Disconnected            the request never left: retrying is free
│   ├── Ambiguous               the request left, its answer was lost
│   ├── RateLimited             not before `retry_after` seconds have passed
│   ├── MessageGone             there is no message any more to be edited
│   ├── DeliveryRefused         the platform will never take this message
│   │   └── ChatGone            nor any other in this chat: blocked, thrown out, deleted
│   └── FileRefused             the platform will never hand this file over
├── ProviderError
│   ├── ProviderUnavailable     network, 5xx, time-out, garbage: may work later
│   │   ├── EmptyAnswer         the model ended its answer before it said anything
│   │   └── NoModelThere        something else answers at the model's address
│   ├── ProviderRateLimited     not before `retry_after` seconds have passed
│   ├── ProviderRejected        the request or the key is wrong: retrying is pointless
│   │   ├── QuotaExceeded       payment or quota
│   │   ├── PicturesRefused     the model takes no pictures
│   │   ├── ContentRefused      a content filter refuses what was said
│   │   └── FeatureRefused      the model does not know a feature of the request
│   ├── ContextOverflow         the prompt is too long; `limit` is the window if stated
│   └── OutputCapTooLarge       input fits, input + output does not; `available` if stated
├── MediaFailed                 no words of a recording, no sound or no picture; a clause says why
├── NothingSaid                 a recording that nobody sent has no words, and so is no message
├── TookTooLong                 a text could not be worked on in time
└── CompressionFailed           a compaction could not be made; the transcript is untouched
    └── SummaryRefused          the summariser's answer cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final


class GatewayError(Exception):
    """Root of the tree; catching it means "anything Legato itself reports"."""


class ConfigError(GatewayError):
    """The configuration cannot be used. `problems` holds one line per problem found."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UserError(GatewayError):
    """The person's request cannot be carried out; the text is shown to them verbatim."""


class SpendCapReached(UserError):
    """A spend cap leaves no room for a model call, so it was not made. `available`: how many output tokens would fit,
    if the caller can do with that; otherwise 0. `key`: the setting of the cap."""

    def __init__(self, text: str, *, available: int = 0, key: str = "budgets") -> None:
        super().__init__(text)
        self.available = available
        self.key = key


class StoreError(GatewayError):
    """The store could not do what was asked."""


class SessionNotFound(StoreError):
    """No session has this id."""


class SessionConflict(StoreError):
    """The write carried a stale epoch or fence, so nothing was written."""


class StoreLocked(StoreError):
    """Another gateway process owns this store."""


class StoreUnavailable(StoreError):
    """The store cannot be read or written now: disk full, unwritable, corrupt or unreachable."""


TOO_FEW_FILES: Final = "the process may open too few files; raise the limit (ulimit -n) to 256 or more."


class StoreOutdated(StoreUnavailable):
    """The store is of an earlier version, and was opened only to be looked at."""


class ToolError(GatewayError):
    """A tool could not do its work; the text is the result the model sees."""


class ToolDenied(ToolError):
    """The person or a policy refused the tool call."""


class AdapterError(GatewayError):
    """A platform call failed."""


class Disconnected(AdapterError):
    """The request never left this machine, so it may be retried freely."""


class Ambiguous(AdapterError):
    """The request left but its answer was lost: it may or may not have been carried out."""


class RateLimited(AdapterError):
    """The platform asks for silence in this chat, or `everywhere`, for `retry_after` seconds."""

    def __init__(self, text: str, *, retry_after: float, everywhere: bool = False) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.everywhere = everywhere


class MessageGone(AdapterError):
    """The message that was to be edited is not there any more, or `stays` as it is, where people still see it."""

    def __init__(self, text: str, *, stays: bool = False) -> None:
        super().__init__(text)
        self.stays = stays


class DeliveryRefused(AdapterError):
    """The platform will never accept this message as it is."""


class ChatGone(DeliveryRefused):
    """Nothing reaches this chat any more, until somebody in it writes again."""


class FileRefused(AdapterError):
    """The platform will never hand over this file; the text says why, as a clause without a full stop."""


def repeatable(error: AdapterError) -> AdapterError:
    """The error of a call that may be repeated whatever became of it."""
    return AdapterError(str(error)) if isinstance(error, Ambiguous) else error


class ProviderError(GatewayError):
    """A model call failed. `status`: of the HTTP answer; None: there was no answer, or no refusal. `billable`: the
    provider had the request, and may have begun an answer. `usage`: the `CanonicalUsage` that it told all the same."""

    status: int | None = None
    billable: bool = False
    usage: Any = None


class ProviderUnavailable(ProviderError):
    """The provider could not be reached or answered garbage; it may work later.

    `malformed` is true where an answer came but could not be understood. `retry_after`: the seconds that the provider
    asks to wait (None: it did not say how long).
    """

    def __init__(
        self,
        text: str,
        *,
        malformed: bool = False,
        timed_out: bool = False,
        billable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text)
        self.malformed = malformed
        self.timed_out = timed_out
        self.billable = billable
        self.retry_after = retry_after


class EmptyAnswer(ProviderUnavailable):
    """The model ended its answer before it said anything: no word, no call."""

    def __init__(self) -> None:
        super().__init__("The model gave an empty answer; /retry asks the model once more.", malformed=True)


class NoModelThere(ProviderUnavailable):
    """What answers at the model's address is no model."""


class ProviderRateLimited(ProviderError):
    """The provider asks to wait `retry_after` seconds (None: it did not say how long)."""

    def __init__(self, text: str, *, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class ProviderRejected(ProviderError):
    """The provider refused the request itself (bad request, bad key, unknown model). `unexplained`: it named no fault,
    so the request may be too long. `away`: it would refuse any request, of this account or to this model."""

    def __init__(self, text: str, *, status: int | None = None, unexplained: bool = False, away: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.unexplained = unexplained
        self.away = away


class QuotaExceeded(ProviderRejected):
    """The account has no credit or quota left."""


class PicturesRefused(ProviderRejected):
    """The model, or its server, takes no pictures; the request had some."""


class ContentRefused(ProviderRejected):
    """The model, or its provider's content filter, refuses what was said; the same words would be refused again."""


class FeatureRefused(ProviderRejected):
    """The model, or its server, does not know a feature of the request, such as tools; it may answer without.
    `allowed`: the values that it takes, as it listed them."""

    def __init__(self, text: str, *, feature: str, allowed: Sequence[str] = (), status: int | None = None) -> None:
        super().__init__(text, status=status)
        self.feature = feature
        self.allowed = allowed


class ContextOverflow(ProviderError):
    """The prompt is longer than the model's window; `limit` is that window in tokens if stated. `bulky`: it may be
    its bytes that are too many, as nothing was said of tokens. `lasting`: the limit is the window; else it holds for
    this call only, and may count the output, too. `because`: the signs by which the refusal was known, for the log."""

    def __init__(
        self, text: str, *, limit: int | None = None, bulky: bool = False, lasting: bool = True, because: str = ""
    ) -> None:
        super().__init__(text)
        self.because = because
        self.limit = limit
        self.bulky = bulky
        self.lasting = lasting


class OutputCapTooLarge(ProviderError):
    """The input fits, but not with max_tokens; `available`: the room, and `limit`: the window, if stated. `because`: as
    with ContextOverflow."""

    def __init__(self, text: str, *, available: int | None = None, limit: int | None = None, because: str = "") -> None:
        super().__init__(text)
        self.because = because
        self.available = available
        self.limit = limit


class MediaFailed(GatewayError):
    """A recording could not be written down, a text not said aloud, a picture not made. The text is a clause for the
    person, such as "the server is busy"; `detail` is for the operator. `again`: the seconds after which another attempt
    may succeed; None: none will."""

    def __init__(self, text: str, *, detail: str = "", again: float | None = None) -> None:
        super().__init__(text)
        self.detail = detail
        self.again = again


class NothingSaid(GatewayError):
    """Somebody was heard in a room, but said nothing: their turn ends without a word."""


class TookTooLong(GatewayError):
    """A function of a text did not end in time, or at all."""


class CompressionFailed(GatewayError):
    """A compaction could not be made; the transcript is as it was."""


class SummaryRefused(CompressionFailed):
    """The summariser answered, but not with a usable summary (empty, truncated, too long)."""
