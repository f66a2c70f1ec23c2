#pragma once
#include <string>
#include <vector>

// Rows of cells as text, in columns as wide as their widest cell.
std::string table(const std::vector<std::vector<std::string>> &rows, bool numbers_right = true);
