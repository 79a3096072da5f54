#pragma once
// One request of a balancer's client on its way to a replica and back. Part of Balancer.

#include <memory>

#include "execute/serve/balance/balancer_state.h"

namespace systole {

void forward_request(const std::shared_ptr<Balancer::State>& state, HttpServerRequest request, HttpResponder responder);

}  // namespace systole
