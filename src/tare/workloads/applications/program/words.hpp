#pragma once
#include <map>
#include <string>
#include <vector>

std::vector<std::string> words(const std::string &text);
std::map<std::string, std::size_t> counts(const std::vector<std::string> &words);
std::size_t distance(const std::string &one, const std::string &other);
std::string nearest(const std::string &word, const std::vector<std::string> &known);
