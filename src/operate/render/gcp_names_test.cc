#include <gtest/gtest.h>

#include "operate/render/names.h"
#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

TEST(CloudNames, are_held_to_what_google_takes) {
  EXPECT_TRUE(is_gcp_name("a") && is_gcp_name("gpu-pool-1"));
  EXPECT_FALSE(is_gcp_name("") || is_gcp_name("1a") || is_gcp_name("a-") || is_gcp_name("A") || is_gcp_name("a_b"));
  EXPECT_TRUE(is_gcp_name(std::string(40, 'a'), 40));
  EXPECT_FALSE(is_gcp_name(std::string(41, 'a'), 40));
  EXPECT_TRUE(is_gcp_project("my-lab-7"));
  EXPECT_FALSE(is_gcp_project("short") || is_gcp_project(std::string(31, 'a')) || is_gcp_project("Lab-project"));
  EXPECT_TRUE(is_bucket("corpus-1") && is_bucket("a.b_c"));
  EXPECT_FALSE(is_bucket("ab") || is_bucket("goog-x") || is_bucket("my-google-x") || is_bucket("a..b") ||
               is_bucket("-ab") || is_bucket(std::string(64, 'a')));
  EXPECT_TRUE(is_gcp_region("us-central1") && is_gcp_region("northamerica-northeast1"));
  EXPECT_FALSE(is_gcp_region("us-central1-a") || is_gcp_region("us-central") || is_gcp_region("moon"));
  EXPECT_TRUE(is_gcp_zone("us-central1-a") && is_gcp_zone("us-south1-ai1b"));
  EXPECT_FALSE(is_gcp_zone("us-central1") || is_gcp_zone("us-central1-") || is_gcp_zone("us-central1-1") ||
               is_gcp_zone("a"));
  EXPECT_EQ(gcp_region_of("us-central1-a"), "us-central1");
  EXPECT_EQ(gcp_region_of("moon"), "");
  EXPECT_EQ(gcp_project_of("trainer@my-lab-7.iam.gserviceaccount.com"), "my-lab-7");
  EXPECT_TRUE(is_gcp_label("team", "vision_2") && is_gcp_label("a", ""));
  EXPECT_FALSE(is_gcp_label("Team", "x") || is_gcp_label("", "x") || is_gcp_label("a", "b c") ||
               is_gcp_label("a", std::string(64, 'x')));
}

TEST(CloudNames, take_nothing_that_a_shell_would_read) {
  for (const std::string& text : hostile_texts()) {
    const bool plain = !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
    EXPECT_TRUE(plain || !(is_gcp_name(text) || is_gcp_project(text) || is_gcp_zone(text) || is_gcp_region(text)))
        << text;
    EXPECT_TRUE(plain || text.empty() || text == "1_000" || !is_gcp_label("k", text)) << text;
  }
}

}  // namespace
}  // namespace systole
