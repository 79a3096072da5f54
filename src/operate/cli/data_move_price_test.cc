// What moving objects costs, by the built-in catalog: a GiB out of each vendor's bucket, and its requests.

#include "operate/cli/data_move_price.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole::cli {
namespace {

class MovePriceOf : public testing::Test {
 protected:
  MovePrice price(const std::vector<MoveRequests>& asked) {
    return price_of_requests(asked, tables_.storage().value());
  }
  CatalogTables tables_ = CatalogTables::read().value();
};

TEST_F(MovePriceOf, requests_and_bytes_of_each_vendor) {
  const MovePrice s3 = price({{"Amazon S3", 250'000, 40'000, Bytes(std::int64_t{100} << 30)}});
  ASSERT_TRUE(s3.requests && s3.to_internet());
  EXPECT_NEAR(s3.requests->count(), 250 * 0.0004 + 40 * 0.005, 1e-12);
  EXPECT_NEAR(s3.to_internet()->count(), 100 * 0.09, 1e-9);
  const std::string text = price_text(s3, 250'000, 40'000);
  EXPECT_EQ(text,
            "\nabout 250,000 reads and 40,000 writes of buckets: $0.30 (Amazon S3 in us-east-1 2026-07-30)"
            "\n100 GiB leave Amazon S3: $9.00 to the internet ($0.09 a GiB from us-east-1, 2026-07-30); usually none "
            "within its region");

  const MovePrice both = price({{"Cloud Storage", 1000, 0, kGiB}, {"Amazon S3", 0, 1000, Bytes()}});
  EXPECT_NEAR(both.requests->count(), 0.0004 + 0.005, 1e-12);
  EXPECT_NEAR(both.to_internet()->count(), 0.12, 1e-12);
  EXPECT_NE(both.requests_of.find("Cloud Storage 2026-"), std::string::npos) << both.requests_of;
}

TEST_F(MovePriceOf, what_has_no_price_is_unknown_and_not_0) {
  const MovePrice mixed = price({{"", 10, 0, kGiB}, {"Cloud Storage", 0, 10, Bytes()}});
  EXPECT_FALSE(mixed.requests || mixed.to_internet());
  EXPECT_EQ(price_text(mixed, 10, 10),
            "\nabout 10 reads and 10 writes of buckets: price unknown\n1.00 GiB leave a bucket: price unknown; usually "
            "none within its region");
  EXPECT_EQ(price_text(price({}), 0, 0), "");
}

TEST_F(MovePriceOf, another_server_of_s3_has_not_the_prices_of_aws) {
  Place bucket;
  bucket.scheme = "s3";
  StoreAccess access;
  const auto at = [&](const std::string& endpoint) {
    access.s3 = [endpoint] {
      S3Access s3;
      s3.endpoint = endpoint;
      return Result<S3Access>(s3);
    };
    return vendor_of(bucket, access);
  };
  EXPECT_EQ(at(""), "Amazon S3");
  EXPECT_EQ(at("https://s3.eu-west-1.amazonaws.com"), "Amazon S3");
  EXPECT_EQ(at("http://minio:9000"), "");
  EXPECT_EQ(at("https://a.r2.example/amazonaws.com"), "");
  bucket.scheme = "gs";
  EXPECT_EQ(vendor_of(bucket, {}), "Cloud Storage");
}

}  // namespace
}  // namespace systole::cli
