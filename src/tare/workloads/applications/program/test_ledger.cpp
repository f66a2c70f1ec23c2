#include <gtest/gtest.h>

#include "ledger.hpp"

class Bank : public ::testing::Test {
  protected:
    void SetUp() override {
        for (int number = 0; number < 100; ++number)
            ledger.open("account " + std::to_string(number), Amount(100000));
    }
    Ledger ledger;
};

TEST_F(Bank, KeepsItsTotal) {
    for (int turn = 0; turn < 20000; ++turn) {
        const auto from = "account " + std::to_string(turn * 7 % 100), to = "account " + std::to_string(turn * 13 % 100);
        if (!(ledger.balance(from) < Amount(turn % 50)))
            ledger.move({from, to, Amount(turn % 50)});
    }
    EXPECT_EQ(ledger.total(), Amount(10000000));
    EXPECT_FALSE(ledger.of("account 7").empty());
}

TEST_F(Bank, RefusesWhatCannotBe) {
    EXPECT_THROW(ledger.open("account 1"), std::invalid_argument);
    EXPECT_THROW(ledger.move({"account 1", "nobody", Amount(1)}), UnknownAccount);
    EXPECT_THROW(ledger.move({"account 1", "account 2", Amount(100001)}), std::invalid_argument);
    EXPECT_THROW(ledger.balance("nobody"), UnknownAccount);
}

TEST_F(Bank, HasItsLargestAccounts) {
    ledger.move({"account 3", "account 9", Amount(5)});
    EXPECT_EQ(ledger.largest(1).front().first, "account 9");
    EXPECT_EQ(ledger.largest(1000).size(), 100u);
}
