-- Messages are entered into the search index by their stems from now on; those below this number are still
-- entered by their words, and are entered anew while the gateway runs.
INSERT INTO meta(name, value) SELECT 'search_stemmed_from', coalesce(max(id) + 1, 0) FROM messages;
