-- The words of the search index, of which those are looked up that a slip of the pen may mean.
CREATE VIRTUAL TABLE search_words USING fts5vocab('message_search', 'row');
