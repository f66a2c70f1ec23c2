#include "words.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

std::vector<std::string> words(const std::string &text) {
    std::vector<std::string> all;
    std::string word;
    for (const unsigned char letter : text + ' ') {
        if (std::isalnum(letter)) {
            word += static_cast<char>(std::tolower(letter));
        } else if (!word.empty()) {
            all.push_back(word);
            word.clear();
        }
    }
    return all;
}

std::map<std::string, std::size_t> counts(const std::vector<std::string> &words) {
    std::map<std::string, std::size_t> count;
    for (const auto &word : words)
        ++count[word];
    return count;
}

// Levenshtein's: letters that are added, removed or replaced.
std::size_t distance(const std::string &one, const std::string &other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t at = 1; at <= one.size(); ++at) {
        std::size_t diagonal = row[0];
        row[0] = at;
        for (std::size_t column = 1; column <= other.size(); ++column) {
            const std::size_t replaced = diagonal + (one[at - 1] == other[column - 1] ? 0 : 1);
            diagonal = row[column];
            row[column] = std::min({row[column] + 1, row[column - 1] + 1, replaced});
        }
    }
    return row.back();
}

std::string nearest(const std::string &word, const std::vector<std::string> &known) {
    const auto best = std::min_element(known.begin(), known.end(), [&](const auto &one, const auto &other) {
        return distance(word, one) < distance(word, other);
    });
    return best == known.end() ? std::string() : *best;
}
