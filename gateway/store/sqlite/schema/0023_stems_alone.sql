-- Entries of 0014 under words are not made anew any more.
DELETE FROM meta WHERE name = 'search_stemmed_from';
