"""Episodes and running summaries of the turns that leave a window.

In: a claimed working memory. Out: Episode rows, review items of poor ones, and the running summary of the session. It
publishes `episode.created` to the outbox of webhooks.
"""
