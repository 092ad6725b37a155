"""The table: what each bug does, where its text stands, and the quick tests one of which must fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """`old`, which stands once in `file`, becomes `new`. Then a test of `tests` fails. A bug that was sown by rule is
    first tried on `near`, the tests nearest to it, and on `others`, within a process."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    near: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    sown: bool = False


_LANES: Final = ("tests/contract/test_store_lanes.py",)
_TURNS: Final = ("tests/contract/test_store_turns.py",)
_SPENDING: Final = ("tests/contract/test_store_spending.py",)

BUGS: Final = (
    # -- messages: each is accepted once, in its order, and run by whoever has its lane
    Bug(
        name="an event that is known is stored again",
        file="gateway/store/steps/lanes.py",
        old="        if event in there:",
        new="        if False:",
        tests=_LANES,
    ),
    Bug(
        name="what another process changed meanwhile is overwritten (Redis)",
        file="gateway/store/redis/scripts/commit.lua",
        old="if found ~= (version == '' and '' or version .. ' ') then",
        new="if false then",
        tests=("tests/integration/test_redis_processes.py",),
    ),
    Bug(
        name="a lane's fence is not checked",
        file="gateway/store/steps/lanes.py",
        old="lane.fence != lease.fence or not lane.owner",
        new="not lane.owner",
        tests=_LANES,
    ),
    Bug(
        name="a session that somebody changed is written to",
        file="gateway/store/steps/sessions.py",
        old="if kept.session.epoch != ref.epoch or kept.session.ended_at is not None:",
        new="if kept.session.ended_at is not None:",
        tests=("tests/contract/test_store_sessions.py", *_TURNS),
    ),
    Bug(
        name="a message that kills the process is tried for ever",
        file="gateway/turns/turn.py",
        old="if item.attempts > MOST_ATTEMPTS or item",
        new="if item",
        tests=("tests/e2e/test_poison.py", "tests/e2e/test_damaged_items.py"),
    ),
    Bug(
        name="a message that a bug keeps out of the store is confirmed",
        file="gateway/turns/poison.py",
        old="            raise StoreUnavailable(why) from error\n",
        new="            return [Accepted(event_id=event, status='new')]\n",
        tests=("tests/e2e/test_receipt.py",),
    ),
    Bug(
        name="a stop breaks off a step that is being stored",
        file="gateway/turns/recorder.py",
        old="        await unbroken(write())",
        new="        await write()",
        tests=("tests/unit/turns/test_recorder.py",),
    ),
    Bug(
        name="words that steer a turn are lost",
        file="gateway/turns/steering.py",
        old="        for each in (*before, message):\n",
        new="        for each in before:\n",
        tests=("tests/e2e/test_busy.py",),
    ),
    Bug(
        name="what two people say is taken for one message",
        file="gateway/turns/parts.py",
        old="    return one.inbound.source.user == other.inbound.source.user",
        new="    return True",
        tests=("tests/unit/turns/test_parts.py", "tests/e2e/test_parts.py"),
    ),
    # -- answers: each is shown once, whole, in the right chat
    Bug(
        name="a message that was shown is sent again",
        file="gateway/delivery/outbox.py",
        old="following = await self._mark_sent(row, platform_id)",
        new="following = await self._retry(row, 0.0)",
        tests=("tests/unit/delivery", "tests/e2e/test_lanes_and_limits.py"),
    ),
    Bug(
        name="a send whose outcome is not known is repeated for ever",
        file="gateway/delivery/outbox.py",
        old="if row.ambiguous > allowed and (old or row.ambiguous > allowed + MOST_REPEATS):",
        new="if False:",
        tests=("tests/unit/delivery", "tests/e2e/test_lanes_and_limits.py"),
    ),
    Bug(
        name="a process that was silent sends a row that may be another's",
        file="gateway/delivery/outbox.py",
        old="if not self._store.owns(row):",
        new="if False:",
        tests=("tests/unit/delivery",),
    ),
    Bug(
        name="a message goes to a chat that is not its conversation's",
        file="gateway/delivery/outbox.py",
        old="if (row.key.platform, row.key.chat) != (row.to.platform, row.to.chat):",
        new="if False:",
        tests=("tests/unit/delivery", "tests/e2e/test_lanes_and_limits.py", "tests/e2e/test_metrics.py"),
    ),
    Bug(
        name="a notice is repeated by a turn that starts again",
        file="gateway/delivery/outbox.py",
        old='        if kind != "notice" or answers is None:\n',
        new="        if True:\n",
        tests=("tests/unit/delivery", "tests/e2e/test_files.py", "tests/e2e/test_replay.py"),
    ),
    Bug(
        name="a silence that a platform asked for is not kept",
        file="gateway/delivery/pacing.py",
        old="self.store.hold_off(account, bucket, error.retry_after)",
        new="self.store.hold_off(account, bucket, 0.0)",
        tests=("tests/unit/delivery", "tests/e2e/test_rates.py"),
    ),
    Bug(
        name="a part is one unit longer than its platform's limit",
        file="gateway/delivery/markdown/characters.py",
        old="reach(text[start : start + limit], limit, unit)",
        new="reach(text[start : start + limit + 1], limit + 1, unit)",
        tests=("tests/unit/delivery/test_splitting.py",),
    ),
    Bug(
        name="a limit in UTF-16 units is counted in characters",
        file="gateway/delivery/markdown/characters.py",
        old="    end = min(len(text), limit)\n    while",
        new="    end = min(len(text), limit)\n    while unit != 'utf16' and",
        tests=("tests/unit/delivery/test_splitting.py",),
    ),
    # -- tools and approvals: an effect happens once, and only if the right person said yes in time
    Bug(
        name="what a tool is about to do is not noted before",
        file="gateway/agent/steps.py",
        old='begin_tools(conversation, intents)\n            self.points("turn.tools_begun")',
        new='begin_tools(conversation, ())\n            self.points("turn.tools_begun")',
        tests=("tests/e2e/test_files.py", "tests/e2e/test_approvals.py", "tests/e2e/test_kill.py"),
    ),
    Bug(
        name="a tool whose outcome is not known is run again",
        file="gateway/agent/steps.py",
        old='not self._tools.repeatable(call, begun=call["id"] in begun)',
        new="False",
        tests=("tests/e2e/test_approvals.py",),
    ),
    Bug(
        name="anybody may answer a question",
        file="gateway/people/approvals.py",
        old="if not approval.may_be_answered_by(inbound.source, admin=self.access.is_admin(inbound.source)):",
        new="if False:",
        tests=("tests/e2e/test_approvals.py",),
    ),
    Bug(
        name="silence counts as a yes",
        file="gateway/people/approvals.py",
        old='elif await approvals.decide(approval, "expired", None) is None:',
        new='elif await approvals.decide(approval, "approved", None) is None:',
        tests=("tests/e2e/test_approvals.py",),
    ),
    Bug(
        name="a tool runs though nobody was asked",
        file="gateway/agent/tools/runtime.py",
        old="    if tool.question(arguments) and not allowed:\n",
        new="    if False:\n",
        tests=("tests/e2e/test_approvals.py",),
    ),
    # -- people
    Bug(
        name="a user id passes for a user in a chat",
        file="gateway/people/access.py",
        old="if person in entries and is_person(user, mail_ids=source.platform in self.mail_ids):",
        new="if person in entries:",
        tests=("tests/unit/people/test_access.py",),
    ),
    Bug(
        name="a code of yesterday lets somebody in",
        file="gateway/domain/pairing.py",
        old="    live = tuple(each for each in book.asking if abs(now - each.at) < CODE_SECONDS)\n    found",
        new="    live = book.asking\n    found",
        tests=("tests/unit/domain/test_pairing.py",),
    ),
    Bug(
        name="a caller without the secret is taken for Telegram",
        file="adapters/telegram/endpoint.py",
        old="if not hmac.compare_digest(given, self.secret.encode()):",
        new="if False:",
        tests=("tests/integration/test_telegram_endpoint.py",),
    ),
    Bug(
        name="an update is confirmed that could not be stored",
        file="adapters/telegram/receiving.py",
        old="if await self._receiver.take(updates):",
        new="if await self._receiver.take(updates) or True:",
        tests=("tests/e2e/test_receipt.py",),
    ),
    # -- secrets
    Bug(
        name="a configured secret is not redacted",
        file="gateway/runtime/redaction/configured.py",
        old="text = text.replace(secret, MARK)",
        new="pass",
        tests=("tests/unit/runtime/test_redaction.py",),
    ),
    Bug(
        name="a log line is written with its secrets",
        file="gateway/runtime/logs.py",
        old="return {key: _without_secrets(value, redact) for key, value in event.items()}",
        new="return event",
        tests=("tests/unit/runtime/test_logs.py",),
    ),
    # -- money
    Bug(
        name="a call may overshoot a spend cap",
        file="gateway/store/steps/spending.py",
        old="if spent + reservation.amount > cap.limit:",
        new="if spent > cap.limit:",
        tests=_SPENDING,
    ),
    Bug(
        name="a call is settled twice",
        file="gateway/store/steps/spending.py",
        old="        space.drop(RESERVED, _name(reservation, cap))\n        known",
        new="        known",
        tests=_SPENDING,
    ),
    # -- sessions
    Bug(
        name="a session ends though somebody spoke meanwhile",
        file="gateway/turns/turn.py",
        old="if session.ended_at is None and self.agents.sessions.is_due(session):",
        new="if session.ended_at is None:",
        tests=("tests/e2e/test_session_ends.py", "tests/e2e/test_hooks.py"),
    ),
    Bug(
        name="a hook that raised counts as called",
        file="gateway/agent/hooks.py",
        old="            if any(returned) or session.temporary:  # what is deleted is not called for again\n",
        new="            if True:\n",
        tests=("tests/e2e/test_failing_hooks.py",),
    ),
    Bug(
        name="an export stays behind what is forgotten",
        file="gateway/agent/forgetting.py",
        old='if file.ref.startswith(f"{EXPORT}:"):',
        new="if False:",
        tests=("tests/e2e/test_forget.py",),
    ),
    Bug(
        name="the hook of an ended session is called twice",
        file="gateway/agent/hooks.py",
        old='if (await self.store.session(session.id)).hook == "pending":',
        new="if True:",
        tests=("tests/e2e/test_broken_turns.py", "tests/e2e/test_hooks.py"),
    ),
    Bug(
        name="a pin is not in the prompt",
        file="gateway/agent/prompt.py",
        old="        if pins:\n",
        new="        if False:\n",
        tests=("tests/e2e/test_pins.py",),
    ),
    # -- the window
    Bug(
        name="a pass that saves just enough is thrown away",
        file="gateway/context/budgeted.py",
        old="after <= plan.before * (1 - EFFECTIVE_SAVING)",
        new="after < plan.before * (1 - EFFECTIVE_SAVING)",
        tests=("tests/unit/context/test_window.py",),
    ),
    Bug(
        name="a call is parted from its result",
        file="gateway/context/boundaries.py",
        old='    while floor < index < len(turns) and turns[index].get("role") == "tool":\n        index -= 1\n',
        new="",
        tests=("tests/unit/context/test_boundaries.py", "tests/contract/test_engine.py"),
    ),
    Bug(
        name="a result that belongs to another call is sent to the model",
        file="gateway/context/assembly.py",
        old='if role != "tool" or message.get("tool_call_id") != waiting.pop():',
        new='if role != "tool" or not waiting.pop():',
        tests=("tests/unit/context/test_assembly.py",),
    ),
    # -- providers
    Bug(
        name="an answer that begins anew keeps the words of the broken one",
        file="gateway/providers/retry.py",
        old="anew(failed, begun=begun)",
        new="()",
        tests=("tests/unit/providers/test_retry.py",),
    ),
    Bug(
        name="the usage of an empty answer is not counted",
        file="gateway/providers/server.py",
        old="            error.usage = answer.usage\n            error.billable",
        new="            error.billable",
        tests=("tests/unit/agent/test_billing.py",),
    ),
    Bug(
        name="a wait that a provider stated is not kept",
        file="gateway/providers/retry.py",
        old="return error.retry_after + self._rng",
        new="return self._rng",
        tests=("tests/unit/providers/test_retry.py",),
    ),
    # -- search, migration, trajectories
    Bug(
        name="a Chinese word within a sentence is not found",
        file="gateway/words/text.py",
        old="            found += *_pairs(dense), dense[-1]",
        new="            found.append(dense)",
        tests=("tests/unit/words/test_text.py", "tests/contract/test_store_reading.py"),
    ),
    Bug(
        name="a migration verifies how many, and not what",
        file="gateway/store/steps/copying.py",
        old="if self._sums[name] != other._sums[name]",
        new="if self.counts[name] != other.counts[name]",
        tests=("tests/unit/store/test_transfer_records.py",),
    ),
    Bug(
        name="a torn row of a killed run over trajectories stays",
        file="gateway/trajectories/journal.py",
        old="        self._file.truncate()\n",
        new="",
        tests=("tests/integration/test_trajectories_killed.py",),
    ),
    # -- the page: nobody else's, and equal to what a reload shows
    Bug(
        name="the page answers under any name",
        file="adapters/web/guard.py",
        old="return len(hosts) == 1 and hosts[0].lower() in self._origins.values()",
        new="return len(hosts) == 1",
        tests=("tests/e2e/test_page_attacks.py",),
    ),
    Bug(
        name="a login outlives its password",
        file="adapters/web/guard.py",
        old="if not hmac.compare_digest(login.bound, self._bound(login.person, cookie)):",
        new="if False:",
        tests=("tests/unit/adapters/test_web_guard.py",),
    ),
    Bug(
        name="a form needs no token",
        file="adapters/web/server.py",
        old='if not hmac.compare_digest(form.fields.get("csrf", "").encode(), login.csrf.encode()):',
        new="if False:",
        tests=("tests/e2e/test_page_attacks.py",),
    ),
    Bug(
        name="a page shows another person's conversation",
        file="gateway/app/views.py",
        old="if tip.key.owner != self.rules.key(source).owner:",
        new="if False:",
        tests=("tests/e2e/test_page_attacks.py",),
    ),
    Bug(
        name="a page keeps a draft that ended while it was away",
        file="adapters/web/stream.py",
        old='self._add("drafts", [entry.id for entry in drafts])',
        new="pass",
        tests=("tests/e2e/test_page_cuts.py",),
    ),
)
