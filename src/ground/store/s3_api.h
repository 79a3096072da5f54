#pragma once
// Requests to one bucket of S3: addressed, signed, tried again, and their refusals as errors. s3_objects.cc makes a
// store of it.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/net/hedged_reads.h"
#include "ground/net/http_pool.h"
#include "ground/net/retry.h"
#include "ground/store/store_access.h"

namespace systole {

struct S3Call {
  std::string method = "GET";
  std::string key = {};                                         // of the object; empty: the bucket
  std::vector<std::pair<std::string, std::string>> query = {};  // not encoded
  HttpHeaders headers = {};
  std::string_view body = {};
  ReadSink* into = nullptr;             // receives the body of a 2xx answer, as far as it has room
  Bytes most{std::int64_t{256} << 20};  // limit of the body, without `into`
  bool once = false;                    // not tried again: for what is worth no wait
};

struct S3Answer {
  HttpReply reply;
  std::size_t got = 0;         // bytes in `into`
  bool may_be_second = false;  // an earlier try was lost, and may have taken effect
  int status() const { return reply.status; }
  bool good() const { return reply.status / 100 == 2; }
  std::string header(std::string_view name) const;  // or ""
  std::string code = {};                            // of an error's body, such as "NoSuchKey"; HEAD has none
};

class S3Api {
 public:
  S3Api(std::string bucket, S3Access access, HttpTrust trust, RetryPolicy retries, std::shared_ptr<Clock> clock);

  // Answers of 408, 429 and 5xx, conflicts of writers (409), a lost connection and a good status with an error in its
  // body are tried again; keys that have expired are asked for anew once. Errors: as send_with_retries; those of the
  // keys; interrupted: another read was faster (hedged_reads.h). Another status is no error.
  Result<S3Answer> send(const S3Call& call);
  Error no_bucket() const;
  // What an answer that is not good() means. `what` was asked for: "s3://bucket/key".
  Error refusal(const S3Answer& answer, std::string_view what) const;

  // Of objects that are written: the encryption that is asked for.
  void add_encryption(HttpHeaders& headers) const;
  const S3Access& access() const { return access_; }
  const std::string& bucket() const { return bucket_; }
  Clock& clock() { return *clock_; }
  const RetryPolicy& retries() const { return retries_; }
  HedgedReads& reads() { return reads_; }

 private:
  std::string url_of(const S3Call& call) const;
  Result<HttpRequest> request_of(const S3Call& call, const std::string& url, std::string_view hash,
                                 AwsKeys& keys) const;
  Result<S3Answer> send_some(const S3Call& call, const std::string& url, std::string_view hash, AwsKeys& keys);

  const std::string bucket_;
  const S3Access access_;
  const RetryPolicy retries_;
  std::shared_ptr<Clock> clock_;
  HttpPool pool_;
  HedgedReads reads_;  // the last member: its reads use the others
};

}  // namespace systole
