#pragma once
// A response of HTTP/1.1: what a handler gives, and its head as it is sent.

#include <ctime>
#include <string>
#include <string_view>

#include "ground/net/http_request_head.h"

namespace systole {

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";  // empty: no Content-Type
  std::string body = {};
  HttpHeaders headers = {};  // more of them; length, date, server and request id are added
};

// {"error": {"message", "type", "param", "code"}}, as OpenAI's API answers.
HttpResponse openai_error(const HttpFault& fault);

// What is sent before the body. `framing` has the headers that tell where the body ends; `id` may be empty.
std::string head_text(const HttpResponse& response, std::string_view id, std::string_view framing, std::time_t now);

}  // namespace systole
