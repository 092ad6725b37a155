-- A memory is read whole: nobody looks for facts by these.
DROP INDEX facts_by_person;
DROP INDEX facts_by_message;
