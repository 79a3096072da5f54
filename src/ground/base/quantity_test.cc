#include "ground/base/quantity.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

std::int64_t bytes(std::string_view text) { return parse_bytes(text).value().count(); }
double seconds(std::string_view text) { return parse_seconds(text).value().count(); }
std::int64_t count(std::string_view text) { return parse_count(text).value(); }

TEST(ParseBytes, means_what_it_says) {
  EXPECT_EQ(bytes("512MB"), 512'000'000);
  EXPECT_EQ(bytes("512MiB"), 512LL << 20);
  EXPECT_EQ(bytes("512"), 512);
  EXPECT_EQ(bytes("512 B"), 512);
  EXPECT_EQ(bytes("1.5 GiB"), 3LL << 29);
  EXPECT_EQ(bytes("1_000kB"), 1'000'000);
  EXPECT_EQ(bytes("0.3KiB"), 307);
  EXPECT_EQ(bytes("0"), 0);
  EXPECT_EQ(bytes("8191PiB"), 8191LL << 50);
}

TEST(ParseBytes, refuses_with_a_hint) {
  EXPECT_EQ(parse_bytes("512mb").error().hint, "write '512MB' or '512MiB'");
  EXPECT_EQ(parse_bytes("512M").error().hint, "write '512MB' or '512MiB'");
  EXPECT_EQ(parse_bytes("1gib").error().hint, "write '1GB' or '1GiB'");
  EXPECT_NE(parse_bytes("1 parsec").error().hint.find("units: B, kB"), std::string::npos);
  EXPECT_NE(parse_bytes("-1MB").error().message.find("negative"), std::string::npos);
  EXPECT_NE(parse_bytes("8192PiB").error().message.find("2^63"), std::string::npos);
  for (const char* bad : {"", "MB", "1.MB", ".5MB", "1e3", "1 2MB", "1MB 2", "1__0", "_1", "1_", "1  MB",
                          "99999999999999999999", "0.0000000000000000001MB", "+1", "nan", "1MB\n"}) {
    EXPECT_EQ(parse_bytes(bad).error().kind, ErrorKind::invalid) << bad;
  }
}

TEST(ParseSeconds, adds_units) {
  EXPECT_EQ(seconds("100s"), 100);
  EXPECT_EQ(seconds("5min"), 300);
  EXPECT_EQ(seconds("2h"), 7200);
  EXPECT_EQ(seconds("1d"), 86'400);
  EXPECT_EQ(seconds("250ms"), 0.25);
  EXPECT_EQ(seconds("1.5h"), 5400);
  EXPECT_EQ(seconds("1h30min"), 5400);
  EXPECT_EQ(seconds("1 h 30 min"), 5400);
  EXPECT_EQ(seconds("0"), 0);
  EXPECT_DOUBLE_EQ(seconds("3us"), 3e-6);
}

TEST(ParseSeconds, refuses_with_a_hint) {
  EXPECT_EQ(parse_seconds("100").error().hint, "write '100s' for seconds, '100min' or '100h'");
  EXPECT_EQ(parse_seconds("5sec").error().hint, "write '5s'");
  EXPECT_EQ(parse_seconds("5m").error().hint.empty(), false);
  EXPECT_EQ(parse_seconds("2hr").error().hint, "write '2h'");
  for (const char* bad : {"", "s", "-1s", "30min1h", "1h1h", "1h ", "1h30", "soon"}) {
    EXPECT_FALSE(parse_seconds(bad).ok()) << bad;
  }
}

TEST(ParseCount, takes_suffixes) {
  EXPECT_EQ(count("15T"), 15'000'000'000'000);
  EXPECT_EQ(count("1.5B"), 1'500'000'000);
  EXPECT_EQ(count("2_000_000"), 2'000'000);
  EXPECT_EQ(count("300k"), 300'000);
  EXPECT_FALSE(parse_count("1.5").ok());
  EXPECT_FALSE(parse_count("0.0001k").ok());
  EXPECT_FALSE(parse_count("10000000T").ok());
  EXPECT_FALSE(parse_count("-3").ok());
  EXPECT_FALSE(parse_count("3x").ok());
}

TEST(Quantities, of_nodes_carry_the_place) {
  const Node node = parse_yaml("memory: 512mb\ntime: 100s\nsteps: 1000\nlist: []\n", "job.yaml").value();
  EXPECT_EQ(as_bytes(*node.find("memory")).error().where, (Where{"job.yaml", 1, 9}));
  EXPECT_EQ(as_seconds(*node.find("time"))->count(), 100);
  EXPECT_EQ(*as_count(*node.find("steps")), 1000);
  EXPECT_EQ(as_count(*node.find("list")).error().message, "expected a count, found a list");
}

}  // namespace
}  // namespace systole
