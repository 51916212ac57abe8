// The part of ArticleStore that writes many articles at once: seeding and import.
#include <map>
#include <string>
#include <vector>

#include "site/article/article_queries.h"
#include "site/article/article_store.h"

namespace weir::site::article {
namespace {

using sql::Session;

// The article under this external id, if there is one.
std::optional<Id> known(Session& session, const ImportedArticle& article) {
  if (article.external_id.empty()) return std::nullopt;
  return session.one(queries::kFindExternal, sql::first<Id>, article.external_id);
}

Id insert(Session& session, const ImportedArticle& article, const std::string& abstract) {
  const std::optional<std::string> external_id =
      article.external_id.empty() ? std::nullopt : std::optional(article.external_id);
  const Id id = session
                    .execute(queries::kInsert, article.author_id, article.title, abstract,
                             static_cast<int>(Status::published), 1, article.published_at,
                             article.published_at, external_id, article.content)
                    .last_id;
  session.execute(queries::kCopyToReaders, id);
  return id;
}

std::vector<Imported> insert_all(Session& session, std::span<const ImportedArticle> articles,
                                 std::span<const std::string> abstracts) {
  std::vector<Imported> result;
  result.reserve(articles.size());
  std::map<Id, std::int64_t> by_author;
  for (std::size_t i = 0; i < articles.size(); ++i) {
    const ImportedArticle& article = articles[i];
    if (const auto id = known(session, article)) {
      result.push_back({*id, false});
      continue;
    }
    result.push_back({insert(session, article, abstracts[i]), true});
    ++by_author[article.author_id];
  }
  std::int64_t inserted = 0;
  for (const auto& [author, count] : by_author) {
    session.execute(queries::kCountUp, queries::kOwnList, author, count);
    inserted += count;
  }
  if (inserted > 0) session.execute(queries::kCountUp, queries::kPublishedList, 0, inserted);
  return result;
}

}  // namespace

std::vector<Imported> ArticleStore::insert_published_now(std::span<const ImportedArticle> articles) {
  // Beforehand: every other write waits while this one has the writer's thread.
  std::vector<std::string> abstracts;
  abstracts.reserve(articles.size());
  for (const ImportedArticle& article : articles) abstracts.push_back(abstract_of(article.content));
  return database_.write_now([&](Session& session) { return insert_all(session, articles, abstracts); });
}

}  // namespace weir::site::article
