"""Models: anything that answers a request. `scripted` needs no server, `openai_chat` is the client
for OpenAI-compatible ones; `cache` keeps the replies of either."""
