#include "predict/prove/slice.h"

#include <gtest/gtest.h>

namespace systole::prove {
namespace {

const Catalog& catalog() {
  static const Catalog all = Catalog::read(builtin_catalog_files()).value();
  return all;
}
Slice slice(const char* text) { return parse_slice(text, catalog()).value(); }

void expect_refused(const char* text, ErrorKind kind, const std::string& part, const std::string& hint = "") {
  const Result<Slice> refused = parse_slice(text, catalog());
  ASSERT_FALSE(refused.ok()) << text;
  EXPECT_EQ(refused.error().kind, kind) << text;
  EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find(hint), std::string::npos) << refused.error().hint;
}

TEST(Slice, of_tpus) {
  const Slice v5e = slice("v5e:4x4");
  EXPECT_EQ(v5e.plugin, "tpu");
  EXPECT_EQ(v5e.topology, "v5e:4x4");
  EXPECT_TRUE(v5e.options.empty());
  EXPECT_EQ(v5e.devices, 16);
  EXPECT_EQ(v5e.memory, 16 * kGiB);
  EXPECT_EQ(v5e.peak, FlopRate(197e12));
  EXPECT_EQ(v5e.cycles_per_second, 1.503e9);
  EXPECT_EQ(slice("v6e:16x16").devices, 256);
  EXPECT_EQ(slice("v5p:4x4x4").devices, 64);
  EXPECT_EQ(slice("v5e:1x1").devices, 1);
}

// On v4 and v5p a chip's two cores are one device; on tpu7x they are two, which share what the chip has.
TEST(Slice, devices_of_a_chip) {
  const Slice v4 = slice("v4:2x2x1");
  EXPECT_EQ(v4.devices, 4);
  ASSERT_EQ(v4.options.size(), 1U);
  EXPECT_EQ(to_string(v4.options[0]), "chip_config_name = megacore");
  const Slice tpu7x = slice("tpu7x:2x2x1");
  EXPECT_EQ(tpu7x.chips, 4);
  EXPECT_EQ(tpu7x.devices, 8);
  EXPECT_EQ(tpu7x.memory, 96 * kGiB);
  EXPECT_EQ(tpu7x.peak, FlopRate(2307e12 / 2));
  EXPECT_TRUE(tpu7x.options.empty());
}

TEST(Slice, of_gpus) {
  const Slice h100 = slice("h100:8");
  EXPECT_EQ(h100.plugin, "gpu");
  EXPECT_EQ(h100.topology, "");
  EXPECT_EQ(h100.devices, 8);
  EXPECT_EQ(to_string(h100.options.at(0)), "topology = 1x1x8");
  EXPECT_NE(to_string(h100.options.at(1)).find("\"NVIDIA H100 80GB HBM3\""), std::string::npos);
  EXPECT_NE(to_string(h100.options.at(1)).find("major: 9 minor: 0 feature_extension"), std::string::npos);
  EXPECT_EQ(to_string(slice("h200:16").options.at(0)), "topology = 1x2x8");
  EXPECT_EQ(to_string(slice("b200:2x4").options.at(0)), "topology = 1x2x4");
  EXPECT_EQ(slice("a100-40gb:2").memory, Bytes(42331013120));
}

TEST(Slice, what_is_none_is_said_with_those_that_are) {
  expect_refused("v6w:2x2", ErrorKind::not_found, "no chip is called 'v6w'", "did you mean 'v6e'?");
  expect_refused("abacus", ErrorKind::not_found, "no chip is called 'abacus'",
                 "known slices: tpu7x:2x2x1, v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, a100:8");
  expect_refused("cpu-avx2:4", ErrorKind::not_found, "no chip is called 'cpu-avx2'");
  expect_refused("l4:1", ErrorKind::unsupported, "nothing can be proved for l4", "tpu7x, v4, v5e, v5p, v6e, a100");
  expect_refused("v3:2x2", ErrorKind::unsupported, "no compiler of it is known");
  expect_refused("v5e", ErrorKind::invalid, "says no number of chips", "v5e:2x2");
  expect_refused("v5e:", ErrorKind::invalid, "'' is no number of chips", "as in v5e:2x2");
  expect_refused("v5e:4x", ErrorKind::invalid, "'' is no number of chips");
  expect_refused("v5e:4x0", ErrorKind::invalid, "'0' is no number of chips");
  expect_refused("v5e:4xfour", ErrorKind::invalid, "'four' is no number of chips");
  expect_refused("v5e:99999999999999999999x1", ErrorKind::invalid, "is no number of chips");
  expect_refused("v5e:2x2x1", ErrorKind::invalid, "lie along 2 axes, and 3 are given", "v5e:2x2");
  expect_refused("v5p:16", ErrorKind::invalid, "lie along 3 axes, and 1 is given", "v5p:2x2x1");
  expect_refused("v6e:16x32", ErrorKind::invalid, "the largest slice of v6e has 256 chips");
  expect_refused("v5p:1000000x1000000x1000000", ErrorKind::invalid, "the largest slice of v5p has 6,144 chips");
  expect_refused("h100:9", ErrorKind::invalid, "a host has 8 of these GPUs", "h100:8");
  expect_refused("h100:2x2x2", ErrorKind::invalid, "hosts x GPUs");
}

}  // namespace
}  // namespace systole::prove
