"""Conversations with models behind OpenAI-compatible endpoints: replies, limits, a cache, one client for a process.

``rstar2_env.core.net.chat_endpoint`` sends the requests.
"""
