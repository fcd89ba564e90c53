"""Network clients: HTTP, chat endpoints, model hubs, Ray, and their retries."""
