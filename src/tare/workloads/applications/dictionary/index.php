<?php
// A dictionary on the web, as the site of Giallorenzo 2021 is one: what a page shows comes out of memcached, and out of
// MariaDB where memcached has it not (or no longer: 15 minutes, as there). `X-Cache` says which of both it was. The
// words that a user looked up last are his session, in memcached; what they mean is asked of MariaDB each time.
declare(strict_types=1);

const KEPT_S = 900;
const LAST_WORDS = 10;

function cache(): Memcached
{
    $cache = new Memcached('site'); // one connection a worker, for all its requests
    if (!$cache->getServerList()) {
        [$host, $port] = explode(':', getenv('CACHE'));
        $cache->addServer($host, (int) $port); // a socket's is 0
    }
    return $cache;
}

function rows(string $query, array $values = []): array
{
    $source = 'mysql:' . getenv('DATABASE') . ';dbname=site';
    $options = [PDO::ATTR_PERSISTENT => true, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC];
    $statement = (new PDO($source, 'site', 'tare', $options))->prepare($query);
    $statement->execute($values);
    return $statement->fetchAll();
}

set_exception_handler(function (Throwable $error): void {
    error_log((string) $error);
    http_response_code(500);
    header('Content-Length: 0');
});

/** What the cache has, or null; a cache that does not answer is an error (500) and no miss. */
function kept(Memcached $cache, string $key): ?array
{
    $value = $cache->get($key);
    if ($cache->getResultCode() === Memcached::RES_NOTFOUND) {
        return null;
    }
    if ($cache->getResultCode() !== Memcached::RES_SUCCESS) {
        throw new RuntimeException('memcached: ' . $cache->getResultMessage());
    }
    return $value;
}

function keep(Memcached $cache, string $key, array $value): void
{
    if (!$cache->set($key, $value, KEPT_S)) {
        throw new RuntimeException('memcached: ' . $cache->getResultMessage());
    }
}

function cached(Memcached $cache, string $key, string $query, array $values = []): array
{
    $value = kept($cache, $key);
    header('X-Cache: ' . ($value === null ? 'miss' : 'hit'));
    if ($value === null) {
        $value = rows($query, $values);
        keep($cache, $key, $value);
    }
    return $value;
}

$cache = cache();
$word = (string) ($_GET['w'] ?? '');
$user = (string) ($_COOKIE['user'] ?? '');
$title = trim($_SERVER['DOCUMENT_URI'], '/');
switch ($title) {
    case '':
        $shown = cached($cache, 'front', 'SELECT word, meaning FROM words ORDER BY weight DESC LIMIT 20');
        break;
    case 'suggest':
        $query = 'SELECT word FROM words WHERE word LIKE ? ORDER BY weight DESC LIMIT 10';
        $shown = cached($cache, "suggest:$word", $query, ["$word%"]);
        break;
    case 'word':
        $shown = cached($cache, "word:$word", 'SELECT word, meaning FROM words WHERE word = ?', [$word]);
        $last = kept($cache, "last:$user") ?? [];
        keep($cache, "last:$user", array_slice(array_unique([$word, ...$last]), 0, LAST_WORDS));
        break;
    case 'like':
        $query = 'SELECT word, meaning FROM words WHERE word >= ? ORDER BY word LIMIT 10';
        $shown = cached($cache, "like:$word", $query, [$word]);
        break;
    case 'last':
        $last = kept($cache, "last:$user") ?? [];
        $places = implode(',', array_fill(0, count($last), '?'));
        $shown = $last ? rows("SELECT word, meaning FROM words WHERE word IN ($places)", array_values($last)) : [];
        break;
}

$page = "<!doctype html>\n<html><head><title>Words: $title</title><link rel=stylesheet href=/site.css></head><body>\n<dl>\n";
foreach ($shown as $row) {
    $page .= '<dt>' . htmlspecialchars($row['word']) . '</dt><dd>' . htmlspecialchars($row['meaning'] ?? '') . "</dd>\n";
}
$page .= "</dl>\n</body></html>\n";
header('Content-Length: ' . strlen($page));
echo $page;
