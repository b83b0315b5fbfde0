"""Episodes and running summaries of the turns that leave a window.

In: a claimed working memory. Out: Episode rows and the running summary of the session.
"""
