#pragma once
// What a store in a cloud needs beside its URI: who asks, where its server is, and what is sent with each request. The
// program that opens the store makes it (ground/cloud), so that stores know no credentials; a local store needs none.

#include <functional>
#include <memory>
#include <string>

#include "ground/net/aws_signature.h"
#include "ground/net/bearer.h"
#include "ground/net/http_client.h"
#include "ground/net/retry.h"
#include "ground/store/object_store.h"

namespace systole {

// gs://: the JSON API of Cloud Storage.
struct GcsAccess {
  std::shared_ptr<BearerSource> bearer = {};                // null: anonymous, for public buckets
  std::string endpoint = "https://storage.googleapis.com";  // without a '/' at its end
  std::string user_project = {};                            // pays for the requests (requester pays); may be empty
  std::string kms_key = {};                                 // of new objects (CMEK); empty: the bucket's default
  std::int64_t part = std::int64_t{8} << 20;                // bytes of a request; REQUIRES: a multiple of 256 KiB
  int parallel = 8;                                         // requests of one read or upload at a time
};

// s3://: the REST API of S3, of AWS or of another server of it.
struct S3Access {
  std::shared_ptr<AwsKeySource> keys = {};  // null: anonymous, for public buckets
  std::string region = "us-east-1";
  std::string endpoint = {};    // "http://host:9000", which has buckets as folders; empty: AWS's of the region
  std::string encryption = {};  // of new objects: "AES256", "aws:kms"; empty: the bucket's default
  std::string kms_key = {};     // with aws:kms; empty: that of the account
  bool requester_pays = false;
  std::string authorities = {};             // PEM file with the endpoint's authorities instead of StoreAccess::trust's
  std::size_t part = std::size_t{8} << 20;  // bytes of a part of an upload and of a range; S3 takes no less than 5 MiB
  int parallel = 8;                         // requests of one read or upload at a time
};

struct StoreAccess {
  std::function<Result<GcsAccess>()> gcs = {};  // called when a gs:// store is opened; empty: anonymous
  std::function<Result<S3Access>()> s3 = {};    // likewise
  HttpTrust trust = {};
  RetryPolicy retries = {};
  std::shared_ptr<Clock> clock = {};  // null: the real one
};

// As open_store of object_store.h, which is the same without credentials. Errors: also as `access` has them.
Result<std::unique_ptr<ObjectStore>> open_store(const StoreUri& uri, const StoreAccess& access);

}  // namespace systole
