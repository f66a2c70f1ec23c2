#include <gtest/gtest.h>

#include "words.hpp"

TEST(Words, AreCounted) {
    std::string text;
    for (int turn = 0; turn < 2000; ++turn)
        text += "One fish, two fish; " + std::to_string(turn) + ' ';
    const auto count = counts(words(text));
    EXPECT_EQ(count.at("fish"), 4000u);
    EXPECT_EQ(count.size(), 2003u);
}

TEST(Words, HaveDistances) {
    EXPECT_EQ(distance("kitten", "sitting"), 3u);
    EXPECT_EQ(distance("", "abc"), 3u);
    EXPECT_EQ(distance(std::string(800, 'a'), std::string(800, 'b')), 800u);
}

TEST(Words, HaveNeighbours) {
    EXPECT_EQ(nearest("ngimx", {"redis", "nginx", "mariadb"}), "nginx");
    EXPECT_EQ(nearest("x", {}), "");
}
