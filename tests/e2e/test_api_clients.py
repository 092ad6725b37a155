"""Programs that people use, before the API: `llm`, `litellm` and npm's `ai`. They are installed into build/clients when
these tests first run, so they need the network once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.api_inside import LiveApi, api
from tests.support.gateway import FakeModel, Say, in_turn

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2] / "build" / "clients"
CALL = Say(text="I look.", calls=[("get_weather", '{"town": "Bonn"}')])
DRY = Say(text="It is dry.")


async def ran(*command: str | Path, cwd: Path, **variables: str) -> str:
    """What a command prints, or the end of the test if it fails."""
    environment = {name: value for name, value in os.environ.items() if "CERT" in name}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(cwd),
        **variables,
    }
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=cwd,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, f"{out.decode()}\n{errors.decode()}"
    return out.decode()


async def python_with(package: str) -> Path:
    """The folder with the programs of an environment that has this package."""
    folder = ROOT / package
    if not (folder / "bin" / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        await ran(sys.executable, "-m", "venv", folder, cwd=folder)
        await ran(folder / "bin" / "pip", "install", "-q", package, cwd=folder)
        (folder / "bin" / "done").touch()
    return folder / "bin"


async def node_with(*packages: str) -> Path:
    """A folder in which scripts find these packages of npm."""
    folder = ROOT / "npm"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        await ran("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *packages, cwd=folder)
        (folder / "done").touch()
    return folder


async def test_llm(tmp_path: Path) -> None:
    """With its own configuration file: a conversation that goes on, and a tool in Python."""
    programs = await python_with("llm")
    script = in_turn(Say(text="Hi, Anna."), Say(text="You are Anna."), CALL, DRY)
    async with api(tmp_path, model=FakeModel(script)) as live:
        home = tmp_path / "llm"
        home.mkdir()
        (home / "extra-openai-models.yaml").write_text(
            f"- model_id: legato\n  model_name: legato\n  api_base: {live.adapter.at}/v1\n"
            "  api_key_name: legato\n  supports_tools: true\n"
        )
        (home / "keys.json").write_text(json.dumps({"legato": live.secret}))

        async def llm(*arguments: str) -> str:
            return (await ran(programs / "llm", *arguments, cwd=home, LLM_USER_PATH=str(home))).strip()

        assert await llm("-m", "legato", "I am Anna.") == "Hi, Anna."
        assert await llm("-c", "Who am I?") == "You are Anna."
        assert [each["role"] for each in live.model.requests[1].messages] == ["system", "user", "assistant", "user"]
        weather = "def get_weather(town: str) -> str:\n    return 'dry in ' + town"
        told = await llm("-m", "legato", "--functions", weather, "How is it in Bonn?")
        assert told.endswith("It is dry.")
        assert live.model.requests[-1].messages[-1]["content"] == "dry in Bonn"


LITELLM = """
import json, sys, litellm
at, key = sys.argv[1:]
how = {"model": "openai/legato", "api_base": at, "api_key": key}
tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]
said = [{"role": "user", "content": "How is it?"}]
first = litellm.completion(messages=said, tools=tools, **how).choices[0].message
said += [first.model_dump(), {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "dry"}]
print(litellm.completion(messages=said, tools=tools, **how).choices[0].message.content)
chunks = litellm.completion(messages=[{"role": "user", "content": "Hello"}], stream=True, **how)
print("".join(each.choices[0].delta.content or "" for each in chunks))
try:
    litellm.completion(messages=said[:1], logit_bias={"1": 1}, **how)
except litellm.BadRequestError as error:
    print("refused", "logit_bias" in str(error))
"""


async def test_litellm(tmp_path: Path) -> None:
    """Tools, a stream, and a refusal by name."""
    programs = await python_with("litellm")
    async with api(tmp_path, model=FakeModel(in_turn(CALL, DRY, Say(text="Hello there.")))) as live:
        (tmp_path / "talk.py").write_text(LITELLM)
        out = await ran(programs / "python", "talk.py", f"{live.adapter.at}/v1", live.secret, cwd=tmp_path)
        lines = [line for line in out.splitlines() if line and not re.search("litellm|feedback", line.lower())]
        assert lines == ["It is dry.", "Hello there.", "refused True"]


AI = """
import { generateText, streamText, tool, stepCountIs, jsonSchema } from 'ai'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
const [baseURL, apiKey] = process.argv.slice(2)
const schema = jsonSchema({ type: 'object', properties: { town: { type: 'string' } } })
const weather = tool({ description: 'x', inputSchema: schema, execute: async ({ town }) => 'dry in ' + town })
const openai = createOpenAI({ baseURL, apiKey }), other = createOpenAICompatible({ name: 'legato', baseURL, apiKey })
for (const model of [openai('legato'), openai.chat('legato'), other('legato')]) {
  const { text } = await generateText({
    model, prompt: 'How is it by ' + model.provider + '?', tools: { get_weather: weather }, stopWhen: stepCountIs(3),
  })
  console.log(text)
}
const { textStream, usage } = streamText({ model: openai('legato'), prompt: 'Hello' })
let said = ''
for await (const part of textStream) said += part
console.log(said, (await usage).outputTokens > 0)
"""


@pytest.mark.usefixtures("npm")
async def test_ai_of_npm(tmp_path: Path) -> None:
    """By its provider for OpenAI, in Responses and in Chat Completions, and by the one for compatible servers."""
    folder = await node_with("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible")
    script = in_turn(*[CALL, DRY] * 3, Say(text="Hello there."))
    async with api(tmp_path, model=FakeModel(script)) as live:
        (folder / "talk.mjs").write_text(AI)
        out = await ran("node", "talk.mjs", f"{live.adapter.at}/v1", live.secret, cwd=folder)
        assert out.splitlines() == ["It is dry."] * 3 + ["Hello there. true"]
        assert results_of(live) == ["dry in Bonn"] * 3


def results_of(live: LiveApi) -> list[object]:
    """The results of tools that the model was shown last."""
    return [each.messages[-1]["content"] for each in live.model.requests if each.messages[-1]["role"] == "tool"]
