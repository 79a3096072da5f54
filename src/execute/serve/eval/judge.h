#pragma once
// Another model scores an answer, by OpenAI's chat completions: a prompt with the rubric and the answer, and a regular
// expression that takes the score out of what the judge says ("LLM as a judge").
//
// No reply in time, a malformed one, and the statuses 408, 429 and 5xx are tried again, after a wait that doubles from
// one second to 30, or that the server asks for (Retry-After, at most 60 s).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "execute/data/text_pattern.h"
#include "execute/serve/field_template.h"
#include "ground/base/clock.h"
#include "ground/net/http_client.h"

namespace systole {

struct JudgeSpec {
  std::string url, model;                   // "https://HOST/v1", without a '/' at its end
  std::string key = {};                     // the secret itself; empty: none
  FieldTemplate prompt = {};                // of an example's fields and of {response}, the answer
  TextPattern pattern = {};                 // takes the score out
  double lowest = 0, highest = 1;           // scores outside do not count
  std::optional<std::int64_t> tokens = {};  // of what the judge says, at most
  Seconds timeout{60.0};                    // for a try
  std::int64_t retries = 3;                 // after the first try
};

struct Judgement {
  std::optional<double> score;  // nothing: there is none
  std::string text = {};        // what the judge said
  std::string why = {};         // why there is none
};

class Judge {
 public:
  // Borrows both. Errors: unsupported: libcurl is not installed.
  static Result<Judge> open(const JudgeSpec& spec, Clock& clock);

  // `fields`: of the prompt; `cancelled`: polled while it waits. A judge that refuses, or says no score between the
  // lowest and the highest, is no error. Errors: of filling the prompt; io: no reply that can be read in all tries;
  // invalid: another status, such as 401; interrupted. Neither an error nor what the judge said shows the key.
  Result<Judgement> score(const Node& fields, const std::function<bool()>& cancelled);

 private:
  Judge(const JudgeSpec& spec, Clock& clock, std::unique_ptr<HttpClient> client)
      : spec_(spec), clock_(clock), client_(std::move(client)) {}
  std::string without_key(std::string text) const;
  std::string shown(std::string text) const;
  bool wait(Seconds time, const std::function<bool()>& cancelled);

  const JudgeSpec& spec_;
  Clock& clock_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace systole
