"""Chooses another model in place of one that cannot answer.

A model is away if its account is refused or out of credit, if its provider has a problem that outlasts the attempts of
`providers.retry`, or if nobody can reach it. Then the next of `fallback_models` is asked. A prompt that is too long is
a different case: it would be too long for others, too, and a compaction helps. So is a refused request: most other
models would refuse it as well, and the person would never learn of the mistake. A model that is away rests for a while,
so that no message waits for it, and the first message after that tries it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final

from gateway.domain.wording import lasting
from gateway.providers.base import ModelSpec
from gateway.runtime.errors import (
    PicturesRefused,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)

_REST: Final = 60.0  # seconds; a provider that has a problem most often has it for minutes
_LONG_REST: Final = 300.0  # seconds; an account is not put in order sooner, and asking a silent model takes long
_LONGEST_REST: Final = 3_600.0  # seconds; some providers state a wait of a day
_ACCOUNT: Final = (401, 403, 404, 410)  # 404 and 410: the model is not offered to this account, or not any more

STAND_IN_MARK: Final = "stand-in:"  # of a session that was told who answers in its own model's place, and of whose
STOOD_IN: Final = "{model} answers for now, because {home} {reason}.{again}"
AGAIN: Final = " I ask {home} again in {time}."
CHEAPER: Final = "{model} answers for now, because {home} would cost more than a spend cap allows."
BACK: Final = "{home} answers again."
NOT_AVAILABLE: Final = "is not available now"
NO_FALLBACK: Final = (
    "If you set fallback_models, in the page's settings or in config.yaml, another model answers instead."
)
ALL_AWAY: Final = "The fallback models ({names}) could not answer either."


def is_away(error: ProviderError) -> bool:
    """Whether an error says that its model cannot answer now, whatever it is asked."""
    if isinstance(error, ProviderRejected):
        refused = not isinstance(error, PicturesRefused) and (error.away or error.status in _ACCOUNT)
        return refused or isinstance(error, QuotaExceeded)
    return isinstance(error, ProviderUnavailable | ProviderRateLimited)


def passes_on(error: ProviderError, *, stands_in: bool) -> bool:
    """Whether the next model is asked after this error. `stands_in`: the error is that of a fallback model, whose
    own refusal of a request is no reason to give up."""
    refused = isinstance(error, ProviderRejected) and not isinstance(error, PicturesRefused)
    return is_away(error) or (stands_in and refused)


def rest(error: ProviderError) -> float:
    """The seconds for which a model is not asked after this error; 0: it may be asked at once."""
    if not is_away(error):
        return 0.0
    if isinstance(error, ProviderRejected):
        return _LONG_REST
    if isinstance(error, ProviderUnavailable) and error.malformed:
        return 0.0  # it is there, and answered this request badly
    least = _LONG_REST if isinstance(error, ProviderUnavailable) and error.timed_out else _REST
    stated = error.retry_after if isinstance(error, ProviderUnavailable | ProviderRateLimited) else None
    return min(max(least, stated or 0.0), _LONGEST_REST)


def reason(error: ProviderError) -> str:
    """Return the reason why a model did not answer, as a clause that follows its name."""
    if isinstance(error, QuotaExceeded):
        return "has no credit left"
    if isinstance(error, ProviderRejected):
        return "is refused by its provider"
    if isinstance(error, ProviderRateLimited):
        return "is asked too often"
    if isinstance(error, ProviderUnavailable) and error.malformed:
        return "gave no usable answer"
    if isinstance(error, ProviderUnavailable) and error.timed_out:
        return "did not answer in time"
    return "cannot be reached or has a problem"


def explained(error: ProviderError, fallbacks: Sequence[ModelSpec]) -> ProviderError:
    """The error of a conversation's own model, with a word about models that could have stood in."""
    if fallbacks:
        more = ALL_AWAY.format(names=", ".join(spec.name for spec in fallbacks))
    elif rest(error) and not (isinstance(error, ProviderRateLimited) and rest(error) <= _REST):  # soon over
        more = NO_FALLBACK
    else:
        return error
    whole = copy(error)
    whole.args = (f"{error} {more}",)
    return whole


def told(
    announced: Sequence[str], spec: ModelSpec, home: ModelSpec, absence: str, again: float = 0.0
) -> tuple[tuple[str, ...], str]:
    """Return a session's marks after an answer of `spec` in the place of `home`, and the sentence for the person. The
    sentence is "" unless another model gave the answer before, in the place of the same one: a person may have chosen
    another `home` since. `absence`: why the own model does not answer, "" for a spend cap. `again`: the seconds until
    it is asked again, 0 for at once."""
    before = next((mark for mark in announced if mark.startswith(STAND_IN_MARK)), "") if announced else ""
    own = f"{STAND_IN_MARK}{home.name} "
    mark = "" if spec.place == home.place else own + spec.name
    if mark == before:
        return tuple(announced), ""
    others = tuple(each for each in announced if each != before)
    if not mark:
        return others, BACK.format(home=home.name) if before.startswith(own) else ""
    name = spec.name if spec.name != home.name else f"Another {spec.name}"
    sentence = STOOD_IN if absence else CHEAPER
    when = AGAIN.format(home=home.name, time=lasting(again)) if again else ""
    return (*others, mark), sentence.format(model=name, home=home.name, reason=absence, again=when)
