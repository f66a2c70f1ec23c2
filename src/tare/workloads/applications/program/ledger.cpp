#include "ledger.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

void Ledger::open(const std::string &account, Amount balance) {
    if (!balances_.emplace(account, balance).second)
        throw std::invalid_argument("there is an account " + account);
}

void Ledger::move(const Entry &entry) {
    const auto from = balances_.find(entry.from), to = balances_.find(entry.to);
    if (from == balances_.end() || to == balances_.end())
        throw UnknownAccount(from == balances_.end() ? entry.from : entry.to);
    if (from->second < entry.amount)
        throw std::invalid_argument(entry.from + " has " + from->second.text());
    from->second = from->second - entry.amount;
    to->second = to->second + entry.amount;
    entries_.push_back(entry);
}

Amount Ledger::balance(const std::string &account) const {
    const auto found = balances_.find(account);
    if (found == balances_.end())
        throw UnknownAccount(account);
    return found->second;
}

Amount Ledger::total() const {
    return std::accumulate(balances_.begin(), balances_.end(), Amount(),
                           [](Amount sum, const auto &account) { return sum + account.second; });
}

std::vector<Entry> Ledger::of(const std::string &account) const {
    std::vector<Entry> own;
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(own),
                 [&](const Entry &entry) { return entry.from == account || entry.to == account; });
    return own;
}

std::vector<std::pair<std::string, Amount>> Ledger::largest(std::size_t count) const {
    std::vector<std::pair<std::string, Amount>> accounts(balances_.begin(), balances_.end());
    std::sort(accounts.begin(), accounts.end(), [](const auto &one, const auto &other) {
        return other.second < one.second || (other.second == one.second && one.first < other.first);
    });
    accounts.resize(std::min(count, accounts.size()));
    return accounts;
}
