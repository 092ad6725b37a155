"""Chat Completions, as OpenAI and everything compatible speak them: `model.provider: openai`."""
