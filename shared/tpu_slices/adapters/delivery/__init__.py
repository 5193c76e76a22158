"""Delivers notifications: to webhooks, to Slack, by e-mail."""
