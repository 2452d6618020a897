"""Alerts: rules that raise alarms about what happens in the record, and notify someone outside.

kinds           what an alarm can be about, and a case of it
noted_events    events → cases: failed runs, gaps
conditions      state rows → cases: approval requests that wait, spent budgets, runs that look stuck
alarms          cases → alarms, grouped; what opens and closes one, and its delivery
evaluation      evaluates everything once
deliveries      what waits to be sent: claimed, retried, given up
delivery_texts  what is sent: JSON, Slack, e-mail
signing         of a webhook (Standard Webhooks)
mail_sender     sends one e-mail
smtp            Django's SMTP backend, which reports each refused recipient
dispatcher      the thread that does all this
edit_rules      what people do with rules
handle_alarms   what people do with alarms and deliveries
view            rules, alarms and figures for the page and the API
"""
