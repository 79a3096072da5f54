#include "operate/render/kube_quantity.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(KubeQuantity, is_read_as_kubernetes_writes_it) {
  EXPECT_EQ(quantity_of("500m"), 0.5);
  EXPECT_EQ(quantity_of("2k"), 2000);
  EXPECT_EQ(quantity_of("1e3"), 1000);
  EXPECT_EQ(quantity_of("16Gi"), 16.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(quantity_of("1E"), 1e18);
  EXPECT_EQ(quantity_of("0"), 0);
}

TEST(KubeQuantity, what_is_none_is_none) {
  for (const char* text : {"", "Gi", "-1", "1 Gi", "1gi", "nan", "inf", "9E", "1Kib", "0x10"})
    EXPECT_FALSE(quantity_of(text).has_value()) << text;
}

}  // namespace
}  // namespace systole
