#include "describe/partition/probe.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(GlobMatches, as_a_shell_does_with_no_character_apart) {
  for (const auto& [glob, name] :
       {std::pair("logits", "logits"), std::pair("*", ""), std::pair("*", "block.3.attn.norm"),
        std::pair("block.*.norm", "block.3.attn.norm"), std::pair("gradient/*", "gradient/blocks.0/q"),
        std::pair("*", ".hidden"), std::pair("**a*b", "xaxab"), std::pair("block.?.attn", "block.3.attn"),
        std::pair("block.[0-3].attn", "block.2.attn"), std::pair("a\\b", "a\\b"), std::pair("a[", "a[")})
    EXPECT_TRUE(glob_matches(glob, name)) << glob << " " << name;
  for (const auto& [glob, name] : {std::pair("", "x"), std::pair("logits", "logits2"), std::pair("ogits", "logits"),
                                   std::pair("a*b", "abc"), std::pair("block.?.attn", "block.12.attn"),
                                   std::pair("block.[0-3].attn", "block.4.attn"), std::pair("LOGITS", "logits")})
    EXPECT_FALSE(glob_matches(glob, name)) << glob << " " << name;
}

}  // namespace
}  // namespace systole
