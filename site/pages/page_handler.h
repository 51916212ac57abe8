// The pages: complete HTML for readers, shells for writers, and the assets of both.
//
//   /                    the hot list, 30 a page (?page=2)
//   /newest              the newest articles (?before=..)
//   /articles/{id}       an article; counts a read, as the API's route does
//   /signin, /signup     forms (?next=.. where to go afterwards)
//   /write, /write/{id}  the editor; /me/articles, /me/collections, /me/history
//   POST /pages/preview  {content} -> {html, lang}: Markdown as readers will see it; for the editor
//   /pages/language/{en|zh}, /pages/theme/{system|light|dark}   remember a choice in a cookie (?back=..)
//   /assets/{file}
//
// None of them is in the OpenAPI document. They are for people: errors are pages too, in the reader's
// language. Everything can be read without JavaScript and without a cookie; nothing comes from another host.
#pragma once

#include <cstddef>
#include <memory>

#include "site/article/article_service.h"
#include "site/interaction/interaction_service.h"
#include "site/ranking/ranking_service.h"
#include "site/user/user_service.h"
#include "weir/base/clock.h"
#include "weir/http/router.h"

namespace weir::site::pages {

// All of them must outlive the router.
struct PageServices {
  user::UserService& users;
  article::ArticleService& articles;
  interaction::InteractionService& interactions;
  ranking::RankingService& rankings;
  const Clock& clock = Clock::system();
};

// The thread that lays out Markdown. Whoever stops the server stops this too, before the server is destroyed:
// what it finishes would otherwise be handed to coroutines that are gone.
class PageWork {
 public:
  virtual ~PageWork() = default;
  // Finishes what waits, refuses what comes later. Once is enough; more is harmless.
  virtual void stop() = 0;
};

// `cache_bytes`: for laid-out articles.
std::shared_ptr<PageWork> add_routes(http::Router& router, PageServices services, std::size_t cache_bytes);

}  // namespace weir::site::pages
