"""The only package that imports vendors' clients: adapters make calls and translate, and decide nothing."""
