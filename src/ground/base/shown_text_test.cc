#include "ground/base/shown_text.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(ShownText, has_no_password_of_an_address) {
  EXPECT_EQ(without_passwords("no http://me:secret@host:1/a@b, ftp://token@h"),
            "no http://***@host:1/a@b, ftp://***@h");
  EXPECT_EQ(without_passwords("'https://me:p@ss@host'"), "'https://***@host'") << "the last @ ends it";
  for (const std::string text : {"https://host/@x", "a@b", "://", "", "x://", "http://host?a@b", "http://h m@x"})
    EXPECT_EQ(without_passwords(text), text);
}

}  // namespace
}  // namespace systole
