#pragma once
#include <cstdint>
#include <optional>
#include <string>

// Money in hundredths: no figure is lost to binary fractions.
class Amount {
  public:
    explicit Amount(std::int64_t hundredths = 0) : hundredths_(hundredths) {}
    static std::optional<Amount> parse(const std::string &text);
    std::string text() const;
    std::int64_t hundredths() const { return hundredths_; }
    Amount operator+(Amount other) const { return Amount(hundredths_ + other.hundredths_); }
    Amount operator-(Amount other) const { return Amount(hundredths_ - other.hundredths_); }
    bool operator==(Amount other) const { return hundredths_ == other.hundredths_; }
    bool operator<(Amount other) const { return hundredths_ < other.hundredths_; }

  private:
    std::int64_t hundredths_;
};
