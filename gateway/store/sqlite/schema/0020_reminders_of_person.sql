-- How many of a person wait in a chat is asked whenever one is added: in a group of many it must not cost more.
DROP INDEX reminders_of_person;
CREATE INDEX reminders_of_person ON reminders(chat, person) WHERE open;
