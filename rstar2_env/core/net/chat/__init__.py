"""Conversations with models behind OpenAI-compatible endpoints: replies, limits, a cache, a client shared in a process.

``rstar2_env.core.net.chat_endpoint`` sends the requests.
"""
