-- So many words, the same for the same number: a word is its number, scattered (a multiplication modulo 2^32), in base 36
-- with the last digit first, as the agent's users spell it (agent/src/users/schedule.rs). WORDS is their number.
CREATE DATABASE site;
CREATE USER site@'%' IDENTIFIED BY 'tare';
GRANT SELECT ON site.* TO site@'%';
USE site;
CREATE TABLE words (
    word CHAR(7) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
    meaning VARCHAR(400) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    weight INT NOT NULL,
    KEY (weight)
) ENGINE = InnoDB;
INSERT INTO words
    SELECT REVERSE(LPAD(LOWER(CONV((seq * 2654435761) & 4294967295, 10, 36)), 7, '0')), REPEAT(MD5(seq), 8), MOD(seq * 7919, 100003)
    FROM seq_0_to_WORDS_less_one;
