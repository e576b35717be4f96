"""Models: anything that answers a request. `local` has those without a server (`scripted`,
`replay`, `human`), `openai_chat` is the client for the others; `cache` keeps the replies of any."""
