#pragma once
// The requests that give temporary keys of AWS: to STS, to a container's agent, to EC2's metadata server. Secrets stand
// in no error.

#include <chrono>
#include <string>

#include "ground/base/clock.h"
#include "ground/net/aws_signature.h"
#include "ground/net/http_pool.h"
#include "ground/net/retry.h"

namespace systole {

struct TemporaryKeys {
  AwsKeys keys;
  Seconds lasts{};
};

struct AssumedRole {
  std::string arn, session;  // session: a name for logs
  std::string external_id = {};
};

struct AwsRequests {
  HttpPool& pool;
  Clock& clock;
  RetryPolicy retries;
  std::string region;
  std::string sts_endpoint;  // empty: AWS's of the region

  // Errors: unsupported (STS does not take it), io, corrupt.
  Result<TemporaryKeys> of_web_identity(const AssumedRole& role, const std::string& token) const;
  Result<TemporaryKeys> of_role(const AssumedRole& role, const AwsKeys& source) const;
  // `authorization`: the header, or "".
  Result<TemporaryKeys> of_container(const std::string& url, const std::string& authorization) const;
  // Errors: also not_found: there is no such server, or the machine has no role.
  Result<TemporaryKeys> of_machine(const std::string& endpoint) const;

 private:
  Result<TemporaryKeys> of_sts(const std::string& form, const AwsKeys* source) const;
  Result<TemporaryKeys> of_json(const HttpReply& reply, const std::string& name) const;
  Result<TemporaryKeys> checked(AwsKeys keys, const std::string& ends, const std::string& name) const;
};

}  // namespace systole
