#include "amounts.hpp"

#include <cctype>
#include <cstdlib>
#include <iomanip>
#include <sstream>

std::optional<Amount> Amount::parse(const std::string &text) {
    std::size_t at = 0;
    const bool negative = !text.empty() && text[0] == '-';
    if (negative)
        ++at;
    std::int64_t whole = 0;
    std::size_t digits = 0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at, ++digits)
        whole = whole * 10 + (text[at] - '0');
    if (digits == 0 || digits > 15)
        return std::nullopt;
    std::int64_t part = 0;
    if (at < text.size() && text[at] == '.') {
        std::size_t places = 0;
        for (++at; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at, ++places)
            part = part * 10 + (text[at] - '0');
        if (places == 0 || places > 2)
            return std::nullopt;
        if (places == 1)
            part *= 10;
    }
    if (at != text.size())
        return std::nullopt;
    const std::int64_t sum = whole * 100 + part;
    return Amount(negative ? -sum : sum);
}

std::string Amount::text() const {
    std::ostringstream out;
    const std::int64_t size = std::llabs(hundredths_);
    out << (hundredths_ < 0 ? "-" : "") << size / 100 << '.' << std::setw(2) << std::setfill('0') << size % 100;
    return out.str();
}
