#include "table.hpp"

#include <algorithm>
#include <cctype>

namespace {
bool number(const std::string &cell) {
    return !cell.empty() && std::all_of(cell.begin(), cell.end(), [](unsigned char letter) {
        return std::isdigit(letter) || letter == '.' || letter == '-';
    });
}
} // namespace

std::string table(const std::vector<std::vector<std::string>> &rows, bool numbers_right) {
    std::vector<std::size_t> widths;
    for (const auto &row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t at = 0; at < row.size(); ++at)
            widths[at] = std::max(widths[at], row[at].size());
    }
    std::string text;
    for (const auto &row : rows) {
        std::string line;
        for (std::size_t at = 0; at < row.size(); ++at) {
            const std::string room(widths[at] - row[at].size(), ' ');
            line += numbers_right && number(row[at]) ? room + row[at] : row[at] + room;
            if (at + 1 < row.size())
                line += "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}
