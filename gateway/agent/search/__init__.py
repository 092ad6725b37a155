"""Searches of the web. Nothing here is loaded before one is set up (`tools.search`).

`plugin`   the port of a search, its description, and those that are there
`servers`  searches that are asked by HTTP: SearXNG, Brave, Tavily
`without_key`  the library ddgs, which asks search engines as a browser does
`results`  what the model reads of the pages that were found, and the sources of an answer
`tool`     the model's tool
"""
