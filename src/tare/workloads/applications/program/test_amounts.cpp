#include <gtest/gtest.h>

#include "amounts.hpp"

TEST(Amounts, AreReadAndWritten) {
    for (const std::string text : {"0.00", "12.50", "-3.07", "999999999.99"})
        EXPECT_EQ(Amount::parse(text)->text(), text);
    EXPECT_EQ(Amount::parse("7")->hundredths(), 700);
    EXPECT_EQ(Amount::parse("7.5")->hundredths(), 750);
}

TEST(Amounts, OthersAreRefused) {
    for (const std::string text : {"", "-", ".5", "1.", "1.234", "1,5", "12x", "1234567890123456"})
        EXPECT_FALSE(Amount::parse(text)) << text;
}

TEST(Amounts, AreAdded) {
    EXPECT_EQ(Amount(150) + Amount(-50), Amount(100));
    EXPECT_EQ(Amount(150) - Amount(200), Amount(-50));
    EXPECT_TRUE(Amount(1) < Amount(2));
}
