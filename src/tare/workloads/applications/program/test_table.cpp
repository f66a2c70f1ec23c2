#include <gtest/gtest.h>

#include "table.hpp"

TEST(Table, HasColumns) { EXPECT_EQ(table({{"name", "sum"}, {"a", "12.5"}}), "name  sum\na     12.5\n"); }

TEST(Table, PutsNumbersToTheRight) { EXPECT_EQ(table({{"a", "100"}, {"b", "7"}}), "a  100\nb    7\n"); }

TEST(Table, TakesRowsOfDifferentLengths) {
    EXPECT_EQ(table({{"a"}, {"b", "c"}}, false), "a\nb  c\n");
    std::vector<std::vector<std::string>> rows(5000, {"cell", "1", "-2.5"});
    EXPECT_EQ(table(rows).size(), 5000u * 14);
}
