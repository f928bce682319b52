//! Signatures of tokens, checked with the library that also serves TLS.
//!
//! `jsonwebtoken` parses tokens and keys. Its own backends would add a second library for cryptography, and it keeps the
//! chosen one in a setting of the whole process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

/// How the signatures of an algorithm are checked.
enum Check {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

/// Returns the claims of a token that `key` has signed with `algorithm`.
pub(crate) fn verified_claims(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Option<Map<String, Value>> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (_, claims) = signed.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if key.family() != algorithm.family() || !is_signed(signed.as_bytes(), &signature, key, algorithm) {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

fn is_signed(message: &[u8], signature: &[u8], key: &DecodingKey, algorithm: Algorithm) -> bool {
    let verified = match (check(algorithm), key.kind()) {
        (Some(Check::Rsa(parameters)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
        }
        (Some(Check::Curve(curve)), DecodingKeyKind::SecretOrDer(point)) => {
            UnparsedPublicKey::new(curve, point).verify(message, signature)
        }
        // Keys of an issuer have no other form, and shared secrets are no keys of an issuer.
        _ => return false,
    };
    verified.is_ok()
}

fn check(algorithm: Algorithm) -> Option<Check> {
    Some(match algorithm {
        Algorithm::ES256 => Check::Curve(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Curve(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Check::Curve(&signature::ED25519),
        Algorithm::RS256 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        // Among them are all algorithms of shared secrets.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::jwk::Jwk;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
    };
    use serde_json::json;

    use super::*;

    fn key(jwk: Value) -> DecodingKey {
        let jwk: Jwk = serde_json::from_value(jwk).unwrap();
        DecodingKey::from_jwk(&jwk).unwrap()
    }

    fn signed(sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(json!({"alg": "any"})), part(json!({"sub": "ada"})));
        let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
        format!("{text}.{signature}")
    }

    fn on_curve(signing: &'static EcdsaSigningAlgorithm, curve: &str) -> (String, DecodingKey) {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(signing, der.as_ref(), &random).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
        let [x, y] = [x, y].map(|part| URL_SAFE_NO_PAD.encode(part));
        let token = signed(|text| pair.sign(&random, text).unwrap().as_ref().to_vec());
        (token, key(json!({"kty": "EC", "crv": curve, "x": x, "y": y})))
    }

    fn edwards() -> (String, DecodingKey) {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let token = signed(|text| pair.sign(text).as_ref().to_vec());
        (token, key(json!({"kty": "OKP", "crv": "Ed25519", "x": x})))
    }

    /// The example of RFC 7515, A.2.
    fn rsa() -> (String, DecodingKey) {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        (token.to_owned(), key(json!({"kty": "RSA", "n": n, "e": "AQAB"})))
    }

    #[test]
    fn a_signature_counts_only_with_its_key_and_its_algorithm() {
        let signed = [
            (Algorithm::ES256, on_curve(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256")),
            (Algorithm::ES384, on_curve(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384")),
            (Algorithm::EdDSA, edwards()),
            (Algorithm::RS256, rsa()),
        ];
        let tried = [Algorithm::PS256, Algorithm::RS384, Algorithm::HS256];
        let tried = signed.iter().map(|(algorithm, _)| *algorithm).chain(tried);
        for algorithm in tried {
            for (of_token, (token, _)) in &signed {
                for (of_key, (_, key)) in &signed {
                    let is_valid = verified_claims(token, key, algorithm).is_some();
                    let is_expected = algorithm == *of_token && of_token == of_key;
                    assert_eq!(is_valid, is_expected, "{algorithm:?}: token {of_token:?}, key {of_key:?}");
                }
            }
        }
    }

    /// Modulus of a key that was only used to sign [`SIGNED_BY_RSA`].
    const MODULUS: &str = "mXvlqSQgDKStoXKkzYnnN0GZWpROrVaziBiwvem7RhbZnVgQAbzWkKNmXRLm-RDTZy6pXiPvU1_sH6_HNguU6q3C82yxoPA8D4GJZcVaMP9wHxecuuQ826uEiKUHT3UDgw9ZbM3dnyIQtp3ozCUIFsVitNCDN5RfI6urhOkErEQ0fbR6wEjyOJDQzZox2TpGES4AIx7zGEIsqfXnZ4NegZhIwR7sBftPhvw6HBURT5xG6odWw7gCBnSH3uzajqJaM6P0mr-kIXfVPBSrAlFEJ-o_U8dSYriweBmjDzoODvK24Pru_8xouR5deuf-kcANNRHQu1ufWQnvH1gwJGw4vQ";
    /// Signatures of the text of [`signed`] by one key, with each algorithm, made with `openssl dgst`.
    const SIGNED_BY_RSA: [(Algorithm, &str); 6] = [
        (
            Algorithm::RS256,
            "BTQ0eNUyDx0Nj-8vVS4K0o9Q74PVILztidGP8962HoHmN4L_klUVc0t6no4ugia5jJ2mZXKKmuHm2hdFMfd5kNeVwFTlxj4KEj0wyzusx8mnIgyLKoBZV1Tbub-P82XaLmi8OSwYtMLOu6zESswOVKdvE8yeDDMVoDVUqCFF0iJjyNT0pR9MRNbznYMPtY2qSwQ13oDRNUBe5ww51r80TGNMmKjixBew-5-6ROPviWSdhSkpS8l3FRK9mdkccL2sJqvFPnrlrClfkMBUcrrZ5yYRm2nm0qr0gnSd4V5T4aJh7VEFo3uS1Fgkr4gb36_UhvTsQKKJQFwyG7dHWMgLEQ",
        ),
        (
            Algorithm::RS384,
            "L-1spwPbpRgEQbuyNLTicqu-gUbQRgaT2LvPD05-v-SZyHODLvl0kOteBz0PKdJJmwkQTukSqFIWIr0B4a_GoY1BaXMAjxbOgGDajQRq4jX7UeNSKqtT1WXzo2LXEg2ZB_AxcD2_EpW2jEjv1gSDE9C8vvpNQUeBpgOeS-WfT-62jyNdomZg1wchRlnMDnSMvxVNExpMIC-QaZh1eVak5Jpvv_Ve9odKcdaWh6bx5nyRx7rF8FvrI7isqFR9WHFlYqwTrTWf_dHitlp2HNiyBhp6-KeAtJGY2HkMLwKpLRg5iFn9c2dI7dhoOUquu73603cCYzNMmh-f2kq0xfN7iQ",
        ),
        (
            Algorithm::RS512,
            "hiyyC8GYmFArc8OQuEKw4up68My9spBLHZGUKC1GFOQ1MsXK_tMMuIZxxJo7izkWgS2E6T8N_LQBi-aSbAKjXtpEJgYpzEdj6hWWyHcbATH5M2w9OJs8mSk8UQfjALCJngkXqsqeos15ISJJqFNqOoD0_upkK130fO_esl_5QSPYMFO0e1A-gbDvuB9WsNud0P4FlthrvXm6mPCOrdtr-vDYFxQO-MYNJFCKoEEcg-A1uV9--XMBfdM9aVZ0o4WkVVmEUOG03qwTnrpFKqgBKN1AMf_VvwkKBdUQDqK1e2OiQu2GzkhiSIzfAA8-1rwpni4Kn_aCYnGAUMLU1nCYxw",
        ),
        (
            Algorithm::PS256,
            "bVMxvJX5IgTwV7ZiFz3bC7AvF_6YurNsignrxDCsfDBDTvXVIn75SBbm5vc6QYiu5sAbKjvz0MGKUGSm0vzwwbljrw88OJKJ1nHkCxDoDvL7LpUxceskbBRYogfKs8md_GTUEv6vCfQu5NxNjsTGGAm9FS1QsRjO8SJfUyYMgwKohXP8gotL2pyQLJHQYNVVmn8uPotq0zvD_MePKsb3klOuD7BDxRq1W717axoWE5x4q9X1MhuSq-gtSnOA6wTs2U-v3Um1PJWnMNghW0f6Hhzv0wYlRP8mCO_Yax7vHZ7-MKk-8ycLuOqb5q9vgjXnumTEEFrlT8bfOCQ4LE9qWQ",
        ),
        (
            Algorithm::PS384,
            "l2e5yiytlFcEinUJPiIeqVd0RePkDWoGgynPIpxSak93SzUHCwv27RIjN_aG2NOtrIdd34MQildaMzWhunszR0YZTK3a120yGT5tyvW3SmZ7sLLMVNtm1EAh4xuomuFlQxej3Onob43-cUI_S0PcFByCEhWJiXMqBRaPY7e4giJsojIo-rOhZbjW_8a5nOaQbE_3GTZHH9vez0dIgq-U0lKwXlpsrm42ona--kx6q2S4Wwhd-chCHczA3aY-3ysuguEnLCjEXQouYjGrxd60X6YGTIvClHlEhS5vzIe_BCqOzM7xSw5rdhQLGrBg8ABeL0uh7gSJIV02nQBbO106JQ",
        ),
        (
            Algorithm::PS512,
            "hv6tVTRJbV1N_e50-ZezjN7TIfgMeW4d1RmEETKJadn-UXTLH1YQGV2PIqSo245Q2CRy-RgyZ4A5OETnq4EfFWUBNmwGQQNEf7CpdtRo_nG9MuzxMbJu2sfZHpo_jiivC7hkqvIM0CH_LK45Yjk8bzt5ErZY52N_YmGpA6luWo_0PqDrO6c9AjZVltpknzs5qW2-7fovmJ824VNp05ko3uvAYaejKjTy9KBxjrCFJZCYCByJU2mDFNy1zMiEYmhJxKJgEoewJzB1VE2SS2PT-YXfkUIQMrNrEQ5hEWkccxhVnzoN2lcTBUSE4wSQbiokAIw6qaVvIlBRR3S-qGJkWQ",
        ),
    ];

    #[test]
    fn each_algorithm_of_rsa_has_its_own_hash_and_padding() {
        let key = key(json!({"kty": "RSA", "n": MODULUS, "e": "AQAB"}));
        for (of_token, signature) in SIGNED_BY_RSA {
            let token = signed(|_| URL_SAFE_NO_PAD.decode(signature).unwrap());
            for (tried, _) in SIGNED_BY_RSA {
                let is_valid = verified_claims(&token, &key, tried).is_some();
                assert_eq!(is_valid, tried == of_token, "{of_token:?}, tried as {tried:?}");
            }
        }
    }

    #[test]
    fn the_claims_are_those_that_were_signed() {
        let (token, key) = edwards();
        let claims = verified_claims(&token, &key, Algorithm::EdDSA).unwrap();
        assert_eq!(Value::Object(claims), json!({"sub": "ada"}));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let changed = URL_SAFE_NO_PAD.encode(r#"{"sub":"eve"}"#);
        let (header, _) = signed.split_once('.').unwrap();
        for wrong in [format!("{header}.{changed}.{signature}"), signed.to_owned(), String::new()] {
            assert_eq!(verified_claims(&wrong, &key, Algorithm::EdDSA), None, "{wrong}");
        }
    }
}
