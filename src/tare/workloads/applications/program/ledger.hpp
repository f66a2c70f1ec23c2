#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "amounts.hpp"

struct Entry {
    std::string from;
    std::string to;
    Amount amount;
};

class UnknownAccount : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Accounts and what moves between them; the sum over all accounts never changes.
class Ledger {
  public:
    void open(const std::string &account, Amount balance = Amount());
    void move(const Entry &entry);
    Amount balance(const std::string &account) const;
    Amount total() const;
    std::vector<Entry> of(const std::string &account) const;
    std::vector<std::pair<std::string, Amount>> largest(std::size_t count) const;

  private:
    std::map<std::string, Amount> balances_;
    std::vector<Entry> entries_;
};
