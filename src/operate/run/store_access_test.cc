#include "operate/run/store_access.h"

#include <gtest/gtest.h>

#include <map>

namespace systole {
namespace {

Result<GcsAccess> asked_with(const std::map<std::string, std::string>& set) {
  return store_access([set](const char* name) -> std::optional<std::string> {
           const auto found = set.find(name);
           return found == set.end() ? std::nullopt : std::optional(found->second);
         })
      .gcs();
}
GcsAccess gcs_with(const std::map<std::string, std::string>& set) { return asked_with(set).value(); }

TEST(StoreAccess, is_what_the_environment_says) {
  const GcsAccess plain = gcs_with({});
  EXPECT_EQ(plain.endpoint, "https://storage.googleapis.com");
  EXPECT_NE(plain.bearer, nullptr);
  for (const char* host : {"127.0.0.1:80", "http://127.0.0.1:80", "http://127.0.0.1:80/", "127.0.0.1:80/storage/v1/"}) {
    const GcsAccess emulated = gcs_with({{"STORAGE_EMULATOR_HOST", host}});
    EXPECT_EQ(emulated.endpoint, "http://127.0.0.1:80") << host;
    EXPECT_EQ(emulated.bearer, nullptr) << "no token goes to an emulator";
  }
  const GcsAccess own = gcs_with({{"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "https://storage-mine.p.googleapis.com/"},
                                  {"GOOGLE_CLOUD_QUOTA_PROJECT", "p"},
                                  {"SYSTOLE_GCS_KMS_KEY", "k"}});
  EXPECT_EQ(own.endpoint, "https://storage-mine.p.googleapis.com");
  EXPECT_NE(own.bearer, nullptr);
  EXPECT_EQ(own.user_project + own.kms_key, "pk");
  EXPECT_EQ(asked_with({{"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "http://10.0.0.7"}}).error().kind,
            ErrorKind::invalid)
      << "a token over plain HTTP";
}

TEST(StoreAccess, of_s3_is_what_the_environment_says) {
  const auto s3_with = [](const std::map<std::string, std::string>& set) {
    return store_access([set](const char* name) -> std::optional<std::string> {
             const auto found = set.find(name);
             return found == set.end() ? std::nullopt : std::optional(found->second);
           })
        .s3();
  };
  const S3Access plain = s3_with({}).value();
  EXPECT_EQ(plain.region, "us-east-1");
  EXPECT_EQ(plain.endpoint + plain.encryption + plain.kms_key + plain.authorities, "");
  EXPECT_NE(plain.keys, nullptr);
  const S3Access own = s3_with({{"AWS_ENDPOINT_URL", "http://minio:9000/"},
                                {"AWS_DEFAULT_REGION", "eu-west-1"},
                                {"AWS_REQUEST_PAYER", "requester"},
                                {"AWS_SSE_KMS_KEY_ID", "k"},
                                {"AWS_CA_BUNDLE", "/ca.pem"}})
                           .value();
  EXPECT_EQ(own.endpoint, "http://minio:9000");
  EXPECT_EQ(own.region, "eu-west-1");
  EXPECT_TRUE(own.requester_pays);
  EXPECT_EQ(own.encryption + own.kms_key + own.authorities, "aws:kmsk/ca.pem");
  EXPECT_EQ(s3_with({{"AWS_ENDPOINT_URL_S3", "minio"}}).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole
